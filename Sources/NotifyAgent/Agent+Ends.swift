// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension Agent {
    /// So many connections have a rule of their own. A default system bus allows 512 rules, and names need them too.
    private static let nameWatchLimit = 32

    /// A duplicate of a socket hangs up when its connection ends; without one the bus is asked to tell.
    func watchEnd(of connection: ManagedConnection, _ link: borrowing BusLink) {
        if connection.socket >= 0,
            watcher.watch(socket: connection.socket, number: connection.number, of: connection.process.number)
        {
            return
        }
        guard connection.nameWatch == .none else { return }
        if nameWatches < Agent.nameWatchLimit {
            connection.nameWatch = .own
            nameWatches += 1
            link.callBus("AddMatch", [.string(Agent.endRule(connection.name))])
        } else {
            connection.nameWatch = .shared
            sharedNameWatches += 1
            if sharedNameWatches == 1 { link.callBus("AddMatch", [.string(Agent.endRule(nil))]) }
        }
        // It may have gone before the rule was there.
        link.callBus("NameHasOwner", [.string(connection.name)]) { [self] answer, link in
            if case .success(let values) = answer, values.first?.boolean == false, isCurrent(connection) {
                connectionIsGone(connection, link)
            }
        }
    }

    func forgetEnd(of connection: ManagedConnection, _ link: borrowing BusLink) {
        switch connection.nameWatch {
        case .none: break
        case .own:
            nameWatches -= 1
            link.callBus("RemoveMatch", [.string(Agent.endRule(connection.name))])
        case .shared:
            sharedNameWatches -= 1
            if sharedNameWatches == 0 { link.callBus("RemoveMatch", [.string(Agent.endRule(nil))]) }
        }
        connection.nameWatch = .none
    }

    /// The rule for the end of one connection, or of any.
    private static func endRule(_ name: String?) -> String {
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged'"
            + (name.map { ",arg0='\($0)'" } ?? "")
    }
}
