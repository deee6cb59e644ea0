// SPDX-License-Identifier: Apache-2.0

/// The posts that a socket has not accepted yet: those queued, and those whose bytes are being written.
package struct PostQueue<Name: Coalescing> {
    private var backlog: CoalescingQueue<Name>
    /// Taken out of the backlog, or never in it, and to be sent again if the connection is lost.
    private var inFlight: [Name] = []
    /// How many posts have been added, and how many were taken out to be written.
    package private(set) var enqueued = 0
    package private(set) var dequeued = 0

    package init(_ backlog: CoalescingQueue<Name> = CoalescingQueue()) { self.backlog = backlog }

    package var count: Int { backlog.count + inFlight.count }
    /// Whether there is something to write besides what is being written.
    package var hasNext: Bool { !backlog.isEmpty }
    /// How many of the posts ever added have been written.
    package var written: Int { dequeued - inFlight.count }

    package mutating func enqueue(_ name: Name) -> CoalescingQueue<Name>.Outcome {
        let outcome = backlog.enqueue(name)
        if outcome == .queued { enqueued += 1 }
        return outcome
    }

    /// Takes out the next one, which is going to be written.
    package mutating func beginNext() -> Name? {
        guard let name = backlog.popFirst() else { return nil }
        dequeued += 1
        inFlight.append(name)
        return name
    }

    /// Notes a post that was not queued, of which the socket has accepted only a part.
    package mutating func begin(_ name: Name) {
        enqueued += 1
        dequeued += 1
        inFlight.append(name)
    }

    /// The socket has accepted all that was being written.
    package mutating func noteWritten() {
        inFlight.removeAll(keepingCapacity: true)
    }

    /// Posts that were being written are written again, before the others: they may be heard twice, but no name is
    /// lost.
    package mutating func startAgain() {
        dequeued -= inFlight.count
        backlog.putBack(inFlight)
        inFlight.removeAll()
    }
}

extension PostQueue: Equatable where Name: Equatable {}
extension PostQueue: Hashable where Name: Hashable {}
