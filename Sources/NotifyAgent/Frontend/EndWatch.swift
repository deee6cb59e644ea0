// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// Makes the bus report the end of connections whose socket the agent does not have.
final class EndWatch {
    private let link: BusLink
    /// The match rule by which the bus reports it.
    private enum Rule { case own, shared }

    /// Up to this many connections have a rule of their own. A default system bus allows 512 rules, and names need them
    /// too.
    private static let limit = 32

    private var rules: [ConnectionID: Rule] = [:]
    private var own = 0
    private var shared = 0

    init(_ link: BusLink) { self.link = link }

    var isEmpty: Bool { rules.isEmpty }
    func watches(_ id: ConnectionID) -> Bool { rules[id] != nil }

    /// - Parameter completion: called if it is already gone.
    func begin(
        _ id: ConnectionID,
        _ name: String,
        ifGone completion: @escaping () -> Void
    ) {
        guard rules[id] == nil else { return }
        if own < EndWatch.limit {
            rules[id] = .own
            own += 1
            link.callBus("AddMatch", [.string(OwnerChange.rule(of: name))])
        } else {
            rules[id] = .shared
            shared += 1
            if shared == 1 { link.callBus("AddMatch", [.string(OwnerChange.rule(of: nil))]) }
        }
        // It may have gone before the rule was in place.
        link.callBus("NameHasOwner", [.string(name)]) { answer in
            if case .success(let values) = answer, values.first?.boolean == false { completion() }
        }
    }

    func end(_ id: ConnectionID, _ name: String) {
        switch rules.removeValue(forKey: id) {
        case nil: break
        case .own:
            own -= 1
            link.callBus("RemoveMatch", [.string(OwnerChange.rule(of: name))])
        case .shared:
            shared -= 1
            if shared == 0 { link.callBus("RemoveMatch", [.string(OwnerChange.rule(of: nil))]) }
        }
    }
}
