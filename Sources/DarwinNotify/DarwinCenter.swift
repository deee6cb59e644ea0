// SPDX-License-Identifier: Apache-2.0

import CLinux
package import NotifyBus

/// The center that Darwin's functions stand on.
///
/// Darwin's notifications know no sessions; a desktop's programs meet on the session bus. `NOTIFYBUS_ADDRESS` says
/// otherwise: `session`, `system`, or a D-Bus address. It is not trusted in a program that runs with the rights of
/// another user.
package enum DarwinCenter {
    /// The one that the whole process shares.
    package static let shared: NotifyCenter = {
        guard let value = linux_secure_getenv("NOTIFYBUS_ADDRESS"), value[0] != 0 else { return .session }
        switch String(cString: value) {
        case "session": return .session
        case "system": return .system
        case let address: return NotifyCenter(bus: .address(address))
        }
    }()
}
