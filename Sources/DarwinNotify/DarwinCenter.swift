// SPDX-License-Identifier: Apache-2.0

import CLinux
package import NotifyBus

/// The center that Darwin's functions stand on.
///
/// Darwin's notifications know no sessions; a desktop's programs meet on the session bus. `NOTIFYBUS_ADDRESS` names
/// another one, by its D-Bus address; it is not trusted in a program that runs with the rights of another user.
package enum DarwinCenter {
    /// The one that the whole process shares; `NotifyCenter.session` unless the environment names a bus.
    package static let shared: NotifyCenter = {
        guard let address = linux_secure_getenv("NOTIFYBUS_ADDRESS"), address[0] != 0 else { return .session }
        return NotifyCenter(bus: .address(String(cString: address)))
    }()
}
