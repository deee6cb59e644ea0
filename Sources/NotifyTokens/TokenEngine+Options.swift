// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension TokenEngine {
    /// Disables what needs the bus, or enables it again.
    package func setDisabled(_ isDisabled: Bool) {
        try? withState { state in state.isDisabled = isDisabled }
    }

    /// Posts the name of a token whenever a file is created, written or removed, until the token is cancelled.
    package func monitorFile(_ token: Int32, path: UnsafePointer<CChar>?) throws(NotifyStatus) {
        guard let path else { throw .invalidRequest }
        let registration = try find(token)
        guard registration.name.needsBus else { throw .invalidRequest }
        let name = registration.name.name
        let (center, keeper) = try withState { state throws(NotifyStatus) in
            try TokenEngine.requireBus(state)
            return (state.center, state.keeper)
        }
        let file = try MonitoredFile(path: String(cString: path)) {
            // While the bus is away nobody hears, and there is nobody to tell.
            try? center.post(name)
        }
        try withState { state throws(NotifyStatus) in
            guard state.registrations[token] === registration else { throw .invalidToken }
            guard state.files[token] == nil else { throw .invalidRequest }
            state.files[token] = file
        }
        do throws(NotifyStatus) {
            try keeper.monitor(file)
        } catch {
            try? withState { state in state.files[token] = nil }
            throw error
        }
        // It may have been cancelled meanwhile.
        if !isValid(token) { keeper.stopMonitoring(file) }
    }
}

extension TokenEngine {
    /// What `notify_set_options` takes: 0x08000000 disables, 0x04000000 enables.
    package func setOptions(_ options: UInt32) {
        if options & 0x0800_0000 != 0 { setDisabled(true) } else if options & 0x0400_0000 != 0 { setDisabled(false) }
    }
}
