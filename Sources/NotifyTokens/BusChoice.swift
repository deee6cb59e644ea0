// SPDX-License-Identifier: Apache-2.0

import CLinux
package import NotifyCore

/// Which bus Darwin's names travel on.
///
/// On Darwin it is the machine. Here it is the user's session: a program there is heard by the user's other programs,
/// and a default system bus lets nobody post without a policy that is installed by an administrator. Who has that policy
/// sets `NOTIFYBUS_ADDRESS=system`.
package enum BusChoice {
    /// The center that everything with a Darwin name shares, on the bus that the environment variable
    /// `NOTIFYBUS_ADDRESS` names: `session`, `system`, or a D-Bus address; the session's if it is not set. The variable
    /// is not trusted in a program that runs with the rights of another user.
    package static let center: NotifyCenter = {
        guard let value = linux_secure_getenv("NOTIFYBUS_ADDRESS"), value[0] != 0 else { return .session }
        switch String(cString: value) {
        case "session": return .session
        case "system": return .system
        case let address: return NotifyCenter(bus: .address(address))
        }
    }()
}
