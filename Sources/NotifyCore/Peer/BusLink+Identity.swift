// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// The unique name of the connection.
    package var uniqueName: String { observing.uniqueName }
}
