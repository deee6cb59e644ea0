// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// Posts through the native interface, and leaves the last posts to be written at exit.
func postByCenter() throws {
    for number in 0..<1_000 { try NotifyCenter.session.post(NotifyName("com.example.end.\(number)")) }
}
