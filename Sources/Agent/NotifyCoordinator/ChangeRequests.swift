// SPDX-License-Identifier: Apache-2.0

/// A request whose change has not taken effect everywhere yet.
struct RequestID: Hashable, Comparable, Sendable {
    let number: UInt64

    static func < (left: RequestID, right: RequestID) -> Bool { left.number < right.number }
}

/// A call of SetState, Release or Report that waits for its change to take effect.
struct ChangeRequest: Hashable {
    /// How long a change may take, in nanoseconds.
    static let limit: Int64 = 5_000_000_000

    /// The eventual reply.
    enum Asker: Hashable {
        case call(CallID, Effect.Answer)
        /// A part of the agent that waits for pending changes.
        case inside(UInt64)
    }

    let asker: Asker
    let deadline: Int64
    /// Connections that have yet to change.
    var missing: Set<ConnectionID>
    /// Processes that have yet to be frozen.
    var running: Set<ProcessID>
    var failure: String?

    var isOver: Bool { missing.isEmpty && running.isEmpty }
}

/// The pending requests.
struct Requests: Hashable {
    private var all: [RequestID: ChangeRequest] = [:]
    private var last: UInt64 = 0

    var isEmpty: Bool { all.isEmpty }
    subscript(id: RequestID) -> ChangeRequest? { all[id] }

    mutating func insert(_ request: ChangeRequest) -> RequestID {
        last += 1
        let id = RequestID(number: last)
        all[id] = request
        return id
    }

    /// Changes a request.
    ///
    /// - Returns: the request if it is now complete, in which case it is forgotten.
    mutating func change(_ id: RequestID, _ change: (inout ChangeRequest) -> Void) -> ChangeRequest? {
        guard all[id] != nil else { return nil }
        if var request = all[id] {
            change(&request)
            all[id] = request
            if !request.isOver { return nil }
        }
        return all.removeValue(forKey: id)
    }

    /// The requests that wait for a process to be frozen.
    func waiting(for process: ProcessID) -> [RequestID] {
        all.filter { $0.value.running.contains(process) }.map(\.key).sorted()
    }

    /// Takes out those that have timed out.
    ///
    /// - Returns: those, the oldest first, and when the next one times out.
    mutating func takeExpired(now: Int64) -> (expired: [ChangeRequest], next: Int64?) {
        let expired = all.filter { $0.value.deadline <= now }.sorted { $0.key < $1.key }
        for (id, _) in expired { all[id] = nil }
        return (expired.map(\.value), all.values.map(\.deadline).min())
    }
}
