// SPDX-License-Identifier: Apache-2.0

/// Posts held until the bus reports who sent them, and everything else that the same sender posts in the meantime, to
/// preserve its order.
package struct SenderDirectory {
    package enum Judgement {
        case believed, refused
        case held(isFirst: Bool, isDropped: Bool)
    }

    package enum Verdict { case believed, refused, unknown }

    private var held: [String: CoalescingQueue<NotifyName>] = [:]
    private var verified: [(names: CoalescingQueue<NotifyName>, sender: String, user: UInt32?)] = []

    package init() {}

    /// What tells two apart: a simulation enters no state twice.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(held)
        for (names, sender, user) in verified {
            hasher.combine(names)
            hasher.combine(sender)
            hasher.combine(user)
        }
    }

    /// Whether posts are held until the bus reports who sent them.
    package var isHolding: Bool { !held.isEmpty }

    /// - Parameter user: the sender's user, if known.
    package mutating func judge(_ name: NotifyName, from sender: String, _ user: UInt32?) -> Judgement {
        if held[sender] != nil {
            let outcome = held[sender]?.enqueue(name)
            return .held(isFirst: false, isDropped: outcome == .full)
        }
        guard case .owned = name.storage.scope else { return .believed }
        if let user { return name.storage.scope.isOpen(to: user) ? .believed : .refused }
        var names = CoalescingQueue<NotifyName>()
        _ = names.enqueue(name)
        held[sender] = names
        return .held(isFirst: true, isDropped: false)
    }

    /// Takes the reply of the bus; nil if the sender is gone.
    package mutating func learn(user: UInt32?, of sender: String) {
        if let names = held.removeValue(forKey: sender) { verified.append((names, sender, user)) }
    }

    /// Whether posts that were held have been verified, and are ready to be taken.
    var hasVerified: Bool { !verified.isEmpty }

    package mutating func nextVerified() -> (name: NotifyName, sender: String, verdict: Verdict)? {
        while !verified.isEmpty {
            guard let name = verified[0].names.popFirst() else {
                verified.removeFirst()
                continue
            }
            let (_, sender, user) = verified[0]
            guard case .owned = name.storage.scope else { return (name, sender, .believed) }
            guard let user else { return (name, sender, .unknown) }
            return (name, sender, name.storage.scope.isOpen(to: user) ? .believed : .refused)
        }
        return nil
    }

    /// - Returns: how many posts were held.
    package mutating func takeAll() -> [NotifyName] {
        var waiting: [NotifyName] = []
        for var queue in verified.map(\.names) + held.values {
            while let name = queue.popFirst() { waiting.append(name) }
        }
        self = SenderDirectory()
        return waiting
    }
}
