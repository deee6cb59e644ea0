// SPDX-License-Identifier: Apache-2.0

/// Which user is behind a unique name.
///
/// A bus never gives a unique name twice, so an answer is right as long as the connection lasts. Posts whose sender is
/// not known yet wait, and so does everything else that the same sender posts meanwhile, to keep its order.
struct SenderDirectory {
    enum Judgement {
        case believed, refused
        case held(isFirst: Bool, isDropped: Bool)
    }

    enum Verdict { case believed, refused, unknown }

    /// How many senders are remembered; beyond that the bus is asked again.
    private static let limit = 4_096

    private var users: [String: UInt32] = [:]
    private var held: [String: CoalescingQueue<NotifyName>] = [:]
    private var verified: [(names: CoalescingQueue<NotifyName>, user: UInt32?)] = []

    /// Whether posts wait for the bus to say who sent them.
    var isHolding: Bool { !held.isEmpty }

    mutating func judge(_ name: NotifyName, from sender: String) -> Judgement {
        if held[sender] != nil {
            let outcome = held[sender]?.enqueue(name)
            return .held(isFirst: false, isDropped: outcome == .full)
        }
        guard case .owned = name.storage.scope else { return .believed }
        if let user = users[sender] { return name.storage.scope.isOpen(to: user) ? .believed : .refused }
        var names = CoalescingQueue<NotifyName>()
        _ = names.enqueue(name)
        held[sender] = names
        return .held(isFirst: true, isDropped: false)
    }

    /// Takes the answer of the bus; nil when the sender is gone.
    mutating func learn(user: UInt32?, of sender: String) {
        if let user {
            if users.count >= SenderDirectory.limit { users.removeAll() }
            users[sender] = user
        }
        if let names = held.removeValue(forKey: sender) { verified.append((names, user)) }
    }

    mutating func nextVerified() -> (name: NotifyName, verdict: Verdict)? {
        while !verified.isEmpty {
            guard let name = verified[0].names.popFirst() else {
                verified.removeFirst()
                continue
            }
            guard case .owned = name.storage.scope else { return (name, .believed) }
            guard let user = verified[0].user else { return (name, .unknown) }
            return (name, name.storage.scope.isOpen(to: user) ? .believed : .refused)
        }
        return nil
    }

    /// - Returns: how many posts were waiting.
    mutating func forgetAll() -> Int {
        let waiting = held.values.reduce(0) { $0 + $1.count } + verified.reduce(0) { $0 + $1.names.count }
        self = SenderDirectory()
        return waiting
    }
}
