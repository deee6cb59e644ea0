// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Why posts of others can't be heard here, and what to do, as one or two sentences; nil if they can.
    package var obstacleToHearing: String? {
        switch bus.passage {
        case .open: nil
        case .closed(let reason): reason
        case .relay: peer?.relayed.obstacle
        }
    }

    /// Why posts of a name can't be heard here; nil if they can.
    package func obstacle(toHearing name: NotifyName) -> String? {
        name.storage.scope == .process ? nil : obstacleToHearing
    }
}
