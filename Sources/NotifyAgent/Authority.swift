// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Which user is behind a unique name. A bus never gives one twice, so an answer is right for ever.
struct Authority {
    private static let limit = 4_096
    private var users: [String: UInt32] = [:]
    /// Who waits for the bus to say who a caller is, in order: a caller's calls must not overtake each other.
    private var waiting: [String: [@Sendable (UInt32?, borrowing BusLink) -> Void]] = [:]

    func user(of name: String) -> UInt32? { users[name] }

    /// Whether the bus is being asked about a name.
    func isAsking(about name: String) -> Bool { waiting[name] != nil }

    /// - Returns: whether the bus must be asked.
    mutating func wait(
        for name: String,
        _ completion: @escaping @Sendable (UInt32?, borrowing BusLink) -> Void
    ) -> Bool {
        waiting[name, default: []].append(completion)
        return waiting[name]?.count == 1
    }

    /// The next one who waited; nil when there is nobody any more.
    mutating func nextWaiting(for name: String) -> (@Sendable (UInt32?, borrowing BusLink) -> Void)? {
        guard waiting[name]?.isEmpty == false else {
            waiting[name] = nil
            return nil
        }
        return waiting[name]?.removeFirst()
    }

    mutating func note(_ user: UInt32, of name: String) {
        if users.count >= Authority.limit { users.removeAll() }
        users[name] = user
    }

    /// Whether a user may change what belongs to another.
    static func permits(_ user: UInt32, over owner: UInt32) -> Bool {
        user == 0 || user == owner
    }
}

extension Agent {
    /// Finds out which user a connection belongs to; nil when it is gone.
    func findUser(
        of name: String,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (UInt32?, borrowing BusLink) -> Void
    ) {
        if !authority.isAsking(about: name), let user = directory[name]?.user ?? authority.user(of: name) {
            return completion(user, link)
        }
        guard authority.wait(for: name, completion) else { return }
        link.callBus("GetConnectionUnixUser", [.string(name)]) { [self] answer, link in
            let user: UInt32? = if case .success(let values) = answer { values.first?.uint32 } else { nil }
            if let user { authority.note(user, of: name) }
            while let next = authority.nextWaiting(for: name) { next(user, link) }
        }
    }
}
