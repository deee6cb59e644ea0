// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// Posts through the native interface, and leaves it to the program's end to write the last of it.
func postByCenter() throws {
    for number in 0..<1_000 { try NotifyCenter.session.post("com.example.end.\(number)") }
}
