// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension TokenEngine {
    /// Notifies a token, and no other, whenever a file is created, written or removed, until the token is cancelled.
    package func monitorFile(_ token: Int32, path: UnsafePointer<CChar>?) throws(NotifyStatus) {
        guard let path else { throw .invalidRequest }
        guard let path = String(validatingCString: path) else { throw .invalidFile }
        let registration = try find(token)
        guard registration.name.needsBus else { throw .invalidRequest }
        let (deferredWork, center, isFirst) = try withState { state throws(NotifyStatus) in
            try TokenEngine.requireBus(state)
            defer { state.followsLifecycle = true }
            return (state.deferredWork, state.center, !state.followsLifecycle)
        }
        if isFirst { followLifecycle(of: center) }
        try withState { state throws(NotifyStatus) in
            guard state.registrations[token] === registration else { throw .invalidToken }
            guard state.files.insert(token).inserted else { throw .invalidRequest }
        }
        do throws(NotifyStatus) {
            try deferredWork.monitor(token, path: path) { self.fileHasChanged(of: registration) }
        } catch {
            try? withState { state in _ = state.files.remove(token) }
            throw error
        }
        // It may have been cancelled in the meantime.
        if !isValid(token) { deferredWork.stopMonitoring(token) }
    }

    /// Files follow the rules for posts: nothing in the background, and after a suspension, one notification for what
    /// was missed.
    private func fileHasChanged(of registration: Registration) {
        switch center.lifecycle.state {
        case .foreground:
            tell(registration)
        case .background:
            return
        case .suspended:
            state.withLock { _ = $0.changedFiles.insert(registration.token) }
            // It may have been resumed in the meantime.
            if center.lifecycle.state == .foreground { tellChangedFiles() }
        }
    }

    private func tell(_ registration: Registration) {
        table.markPosted(registration.token)
        registration.deliver()
    }

    private func tellChangedFiles() {
        let registrations = state.withLock { state in
            defer { state.changedFiles = [] }
            return state.changedFiles.sorted().compactMap { state.registrations[$0] }
        }
        for registration in registrations { tell(registration) }
    }

    private func followLifecycle(of center: NotifyCenter) {
        let follower = Follower<LifecycleState>(
            change: { state in
                switch state {
                case .foreground: self.tellChangedFiles()
                case .background: self.state.withLock { $0.changedFiles = [] }
                case .suspended: break
                }
            },
            end: {}
        )
        // Without threads there is no observer either, and so nothing to suspend.
        _ = try? center.lifecycle.follow(follower)
    }
}
