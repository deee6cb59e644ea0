// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// The unique name of the connection.
    package var uniqueName: String { observing.uniqueName }

    /// Whether the connection takes the place of one that the same bus has cut off: posts may have been missed.
    package var wasCutOff: Bool { observing.wasCutOff }
}
