// SPDX-License-Identifier: Apache-2.0

/// The version that every command reports. A test sees that the other files which need it say the same.
package let notifyBusVersion = "1.0.0-beta.1"
