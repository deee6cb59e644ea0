// SPDX-License-Identifier: Apache-2.0

package import NotifyCore
import NotifyTokens

/// The center behind Darwin's functions.
package enum DarwinCenter {
    /// The one shared by the whole process, including notify(3), on the bus that `BusChoice` names.
    package static let shared: NotifyCenter = BusChoice.center
}
