// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension TokenEngine {
    /// Disables everything that needs the bus, or enables it again.
    package func setDisabled(_ isDisabled: Bool) {
        try? withState { state in state.isDisabled = isDisabled }
    }
}

extension TokenEngine {
    /// The options of `notify_set_options`: 0x08000000 disables, 0x04000000 enables.
    package func setOptions(_ options: UInt32) {
        if options & 0x0800_0000 != 0 { setDisabled(true) } else if options & 0x0400_0000 != 0 { setDisabled(false) }
    }
}
