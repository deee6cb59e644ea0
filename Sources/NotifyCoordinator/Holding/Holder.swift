// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// A part of the agent that observes names without a connection of its own: an entry that starts a program, or an
/// observer that a relay serves. The owner of residents assigns their numbers.
package struct ResidentID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package enum Kind: UInt8, Sendable {
        case launch, relayed
    }

    package let kind: Kind
    package let number: UInt64

    package init(_ kind: Kind, _ number: UInt64) {
        self.kind = kind
        self.number = number
    }

    package var description: String { "\(kind) \(number)" }

    package static func < (left: ResidentID, right: ResidentID) -> Bool {
        (left.kind.rawValue, left.number) < (right.kind.rawValue, right.number)
    }
}

/// Whoever the agent keeps names for.
enum HolderID: Hashable, Comparable, Sendable {
    case connection(ConnectionID)
    case resident(ResidentID)
}

/// The conditions for posts to set bits.
protocol NameHolder {
    /// The user whose quota the names count towards.
    var user: UInt32 { get }
    var subjects: Subjects { get }
    /// Whether posts set bits.
    var isCollecting: Bool { get }
    var pending: PendingNames { get set }
    /// How many posted names were dropped for lack of room.
    var dropped: UInt64 { get set }
}

extension Observer: NameHolder {
    var isCollecting: Bool { transition.isCollecting }
}

struct Resident: NameHolder {
    let id: ResidentID
    let user: UInt32
    var subjects: Subjects
    /// Whether its names have been held once: until then nothing is promised.
    var isCollecting = false
    var pending = PendingNames()
    var dropped: UInt64 = 0
}

extension NameHolder {
    /// A name that it observes was posted.
    mutating func keep(_ name: NotifyName, _ ledger: inout Ledger) -> Keeping {
        guard isCollecting else { return .deaf }
        if pending.contains(name) { return .known }
        guard pending.hasRoom, ledger.keepPending(name, of: user) else {
            dropped += 1
            return .noRoom
        }
        let isFirst = pending.isEmpty
        _ = pending.insert(name)
        return .kept(isFirst: isFirst)
    }

    /// Takes out what is pending but no longer observed.
    mutating func dropPending() -> [NotifyName] {
        var gone: [NotifyName] = []
        let subjects = subjects
        pending.remove { name in
            guard !subjects.contains(name) else { return false }
            gone.append(name)
            return true
        }
        return gone
    }
}

/// The effect of a post on a holder.
enum Keeping: Equatable {
    /// Posts set no bits.
    case deaf
    case known
    case noRoom
    case kept(isFirst: Bool)

    /// Whether another post of the name would be news.
    var leavesNews: Bool { self == .deaf || self == .noRoom }
}
