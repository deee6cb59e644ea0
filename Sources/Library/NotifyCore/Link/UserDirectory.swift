// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The users of unique names.
///
/// A bus never reuses a unique name, so an answer is valid as long as the connection to the bus lasts.
struct UserDirectory {
    typealias Completion = (Result<UInt32, BusFault>) -> Void

    /// How many names are remembered; beyond that the bus is asked again.
    private static let limit = 4_096

    private var users: [String: UInt32] = [:]
    /// Those waiting for the reply, in order: actions for the same connection must not overtake each other.
    private var waiting: [String: [Completion]] = [:]

    /// The user of a name that was asked for before, and for which no call is waiting.
    subscript(name: String) -> UInt32? { waiting[name] == nil ? users[name] : nil }

    /// - Returns: whether the bus must be asked.
    mutating func wait(for name: String, _ completion: @escaping Completion) -> Bool {
        waiting[name, default: []].append(completion)
        return waiting[name]?.count == 1
    }

    /// The next one that was waiting; nil if there is none.
    mutating func nextWaiting(for name: String) -> Completion? {
        guard waiting[name]?.isEmpty == false else {
            waiting[name] = nil
            return nil
        }
        return waiting[name]?.removeFirst()
    }

    mutating func note(_ user: UInt32, of name: String) {
        if users.count >= UserDirectory.limit { users.removeAll() }
        users[name] = user
    }
}

extension BusLink {
    /// Determines which user a connection belongs to; asks the bus only once.
    package func findUser(
        of name: String,
        then completion: @escaping (Result<UInt32, BusFault>) -> Void
    ) {
        if let user = users[name] { return completion(.success(user)) }
        guard users.wait(for: name, completion) else { return }
        callBus("GetConnectionUnixUser", [.string(name)]) { [self] answer in
            let user = answer.flatMap { values in
                values.first?.uint32.map { .success($0) } ?? .failure(BusFault.unknownUser(of: name))
            }
            if case .success(let user) = user { users.note(user, of: name) }
            while let next = users.nextWaiting(for: name) { next(user) }
        }
    }
}

extension BusLink {
    /// Whether the bus knows this process by the user that it is here: see `BusConnection.hasConfirmedUser`.
    package var hasConfirmedUser: Bool { connection?.hasConfirmedUser != false }

    /// Determines which user this process is to the bus.
    func findOwnUser(then completion: @escaping (Result<UInt32, BusFault>) -> Void) {
        if hasConfirmedUser { completion(.success(geteuid())) } else { findUser(of: uniqueName, then: completion) }
    }
}

extension BusFault {
    fileprivate static func unknownUser(of name: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.Failed", message: "The bus does not report the user of \(name).")
    }
}
