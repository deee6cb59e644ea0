// SPDX-License-Identifier: Apache-2.0

import CLinux

extension NotifyCenter.Bus {
    /// The bus named by the environment variable `NOTIFYBUS_ADDRESS`: `session`, `system`, or a D-Bus address; nil if
    /// it is not set. The variable is ignored in a program that runs with the rights of another user.
    package static var inEnvironment: NotifyCenter.Bus? {
        guard let value = linux_secure_getenv("NOTIFYBUS_ADDRESS"), value[0] != 0 else { return nil }
        return switch String(cString: value) {
        case "session": .session
        case "system": .system
        case let address: .address(address)
        }
    }
}
