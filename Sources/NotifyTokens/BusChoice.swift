// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// The bus on which Darwin's names travel.
///
/// On Darwin names are system-wide. Here the default is the user's session bus, where a desktop's programs meet and
/// other users' are not heard. For names that all users share, set `NOTIFYBUS_ADDRESS=system`.
package enum BusChoice {
    /// The center shared by everything with a Darwin name, on the bus that `NOTIFYBUS_ADDRESS` names; by default the
    /// session bus.
    package static let center: NotifyCenter =
        switch NotifyCenter.Bus.inEnvironment?.kind {
        case .session, nil: .session
        case .system: .system
        case .address(let address): NotifyCenter(bus: .address(address))
        }
}
