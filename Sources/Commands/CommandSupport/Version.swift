// SPDX-License-Identifier: Apache-2.0

/// The version that every command reports. A test checks that all other files which state it agree.
package let notifyBusVersion = "1.0.0-beta.1"
