// SPDX-License-Identifier: Apache-2.0

package import NotifyBus
import NotifyTokens

/// The center that Darwin's functions stand on.
package enum DarwinCenter {
    /// The one that the whole process shares, notify(3) included, on the bus that `BusChoice` names.
    package static let shared: NotifyCenter = BusChoice.center
}
