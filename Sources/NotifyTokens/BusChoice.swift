// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// The bus on which Darwin's names travel.
///
/// On Darwin names are system-wide. Here the default is the user's session bus, where a program is heard by the user's
/// other programs: a default system bus lets nobody post until an administrator has installed a policy. With that
/// policy, set `NOTIFYBUS_ADDRESS=system`.
package enum BusChoice {
    /// The center shared by everything with a Darwin name, on the bus that `NOTIFYBUS_ADDRESS` names; by default the
    /// session bus.
    package static let center: NotifyCenter =
        switch NotifyCenter.Bus.inEnvironment {
        case .session, nil: .session
        case .system: .system
        case .address(let address): NotifyCenter(bus: .address(address))
        }
}
