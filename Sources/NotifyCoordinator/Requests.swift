// SPDX-License-Identifier: Apache-2.0

/// A request whose change is not in force everywhere yet.
struct RequestID: Hashable, Comparable, Sendable {
    let number: UInt64

    static func < (left: RequestID, right: RequestID) -> Bool { left.number < right.number }
}

/// A call of SetState, Release or Report that waits for its change to be in force.
struct ChangeRequest {
    /// How long a change may take, in nanoseconds.
    static let limit: Int64 = 5_000_000_000

    /// What is answered in the end.
    enum Asker {
        case call(CallID, Effect.Answer)
        /// Somebody who waits for the changes that are under way.
        case inside(UInt64)
    }

    let asker: Asker
    let deadline: Int64
    /// Connections that have yet to get there.
    var missing: Set<ConnectionID>
    /// Processes that have yet to stand still.
    var running: Set<ProcessID>
    var failure: String?

    var isOver: Bool { missing.isEmpty && running.isEmpty }
}

/// Who waits for which change.
struct Requests {
    private var all: [RequestID: ChangeRequest] = [:]
    /// The oldest first; each has as much time as the others.
    private var order: [RequestID] = []
    private var last: UInt64 = 0

    var isEmpty: Bool { all.isEmpty }
    subscript(id: RequestID) -> ChangeRequest? { all[id] }

    mutating func insert(_ request: ChangeRequest) -> RequestID {
        last += 1
        let id = RequestID(number: last)
        all[id] = request
        order.append(id)
        return id
    }

    /// Changes a request.
    ///
    /// - Returns: it, if it is over now; it is forgotten then.
    mutating func change(_ id: RequestID, _ change: (inout ChangeRequest) -> Void) -> ChangeRequest? {
        guard all[id] != nil else { return nil }
        if var request = all[id] {
            change(&request)
            all[id] = request
            if !request.isOver { return nil }
        }
        return all.removeValue(forKey: id)
    }

    /// Those that wait for a process to stand still.
    func waiting(for process: ProcessID) -> [RequestID] {
        all.filter { $0.value.running.contains(process) }.map(\.key).sorted()
    }

    /// Takes out those whose time is over.
    ///
    /// - Returns: they, and when the next one's time is over.
    mutating func takeExpired(now: Int64) -> (expired: [ChangeRequest], next: Int64?) {
        var expired: [ChangeRequest] = []
        while let first = order.first {
            if let request = all[first] {
                guard request.deadline <= now else { break }
                expired.append(request)
                all[first] = nil
            }
            order.removeFirst()
        }
        return (expired, order.first.flatMap { all[$0]?.deadline })
    }
}
