// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization

extension TokenEngine {
    /// Sees to it that the child of fork(2) finds the lock free, and begins without registrations. See pthread_atfork(3).
    func surviveForks() {
        pthread_atfork(
            { TokenEngine.shared.state.lockForFork() },
            { TokenEngine.shared.state.unlockAfterFork() },
            {
                // Of what follows only this may happen at once: see signal-safety(7).
                TokenEngine.shared.table.abandon()
                TokenEngine.shared.wasForked.store(true, ordering: .relaxed)
                TokenEngine.shared.state.renewAfterFork()
            }
        )
    }

    /// Begins anew in a child, with the lock held.
    func beginInChild(_ state: inout State) {
        wasForked.store(false, ordering: .relaxed)
        // What there was belongs to threads that the child does not have, and may be locked by them: it is left alone
        // for ever, not even released.
        _ = Unmanaged.passRetained(Inheritance(state))
        state = State(
            center: NotifyCenter(bus: state.center.bus),
            keeper: Keeper(),
            isDisabled: state.isDisabled,
            isChild: true
        )
        table.restart()
    }

    private final class Inheritance {
        let state: State
        init(_ state: State) { self.state = state }
    }
}
