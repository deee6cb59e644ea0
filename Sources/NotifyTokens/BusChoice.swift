// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// Which bus Darwin's names travel on.
///
/// On Darwin it is the machine. Here it is the user's session: a program there is heard by the user's other programs,
/// and a default system bus lets nobody post without a policy that is installed by an administrator. Who has that policy
/// sets `NOTIFYBUS_ADDRESS=system`.
package enum BusChoice {
    /// The center that everything with a Darwin name shares, on the bus that `NOTIFYBUS_ADDRESS` names; the session's if
    /// it is not set.
    package static let center: NotifyCenter =
        switch NotifyCenter.Bus.inEnvironment {
        case .session, nil: .session
        case .system: .system
        case .address(let address): NotifyCenter(bus: .address(address))
        }
}
