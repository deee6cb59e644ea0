// SPDX-License-Identifier: Apache-2.0

/// The version that every command reports.
package let notifyBusVersion = "0.1.0"
