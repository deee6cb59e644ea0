// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A call of SetState, Release or Report that waits for its change to be in force everywhere.
///
/// `@unchecked Sendable`, like all that belongs to the agent: only the thread that reads touches it.
final class ChangeRequest: @unchecked Sendable {
    /// How long a change may take, in milliseconds.
    static let limit: Int64 = 5_000

    let call: BusCall
    /// Whose call it is.
    let user: UInt32
    /// The processes to stop when their observers are suspended.
    let freezes: [ManagedProcess]
    let count: Int
    /// When to give up, in nanoseconds of the monotonic clock.
    let deadline: Int64
    /// Who has yet to get there, by number.
    private(set) var missing: [UInt64: String]
    private(set) var failure: String?
    private(set) var isAnswered = false

    init(_ call: BusCall, by user: UInt32, for connections: [ManagedConnection], freezes: [ManagedProcess] = []) {
        self.call = call
        self.user = user
        self.freezes = freezes
        count = connections.count
        deadline = MonotonicClock.now + ChangeRequest.limit * 1_000_000
        let titles = connections.map { ($0.number, "\($0.name) (process \($0.process.pid))") }
        missing = Dictionary(uniqueKeysWithValues: titles)
    }

    /// - Returns: whether that was the last one.
    func note(_ connection: ManagedConnection, failure: String?) -> Bool {
        missing[connection.number] = nil
        self.failure = self.failure ?? failure
        return missing.isEmpty && !isAnswered
    }

    /// Answers the call, once.
    func finish(on link: borrowing BusLink) {
        guard !isAnswered else { return }
        isAnswered = true
        if let failure {
            link.refuse(call, .failed(failure))
        } else if call.member == "Report" {
            link.reply(to: call)
        } else {
            link.reply(to: call, [.uint32(UInt32(count))])
        }
    }

    func fail(_ fault: BusFault, on link: borrowing BusLink) {
        guard !isAnswered else { return }
        isAnswered = true
        link.refuse(call, fault)
    }

    /// Answers that it has taken too long.
    func expire(on link: borrowing BusLink) {
        let names = missing.values.sorted()
        let list = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
        fail(.timedOut(ChangeRequest.limit / 1_000, list), on: link)
    }
}
