// SPDX-License-Identifier: Apache-2.0

import CLinux

/// The version that every command reports. A test checks that all other files which state it agree.
package let notifyBusVersion = "1.0.0-beta.1"

/// What follows it in a program that `make build` has made from git.
let notifyBusCommit: String = {
    let number = linux_commit()
    guard number != 0 else { return "" }
    let digits = String(number >> 4, radix: 16)
    let commit = String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    return " (commit \(commit)\(number & 1 == 0 ? "" : ", with changes"))"
}()
