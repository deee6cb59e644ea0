// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// Which user is behind a unique name. A bus never gives one twice, so an answer is right for ever.
struct Authority {
    private static let limit = 4_096
    private var users: [String: UInt32] = [:]

    func user(of name: String) -> UInt32? { users[name] }

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
        if let user = directory[name]?.user ?? authority.user(of: name) { return completion(user, link) }
        link.callBus("GetConnectionUnixUser", [.string(name)]) { [self] answer, link in
            guard case .success(let values) = answer, let user = values.first?.uint32 else {
                return completion(nil, link)
            }
            authority.note(user, of: name)
            completion(user, link)
        }
    }
}
