// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization

extension TokenEngine {
    /// Sees to it that the child of fork(2) finds the lock free, and begins without registrations. See pthread_atfork(3).
    func surviveForks() {
        TokenEngine.rehearse()
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

    /// Starts over in a child, with the lock held.
    func beginInChild(_ state: inout State) {
        wasForked.store(false, ordering: .relaxed)
        // What there was belongs to threads that the child does not have, and may be locked by them: it is left alone
        // as long as the engine lives, not even released.
        state = State(
            center: NotifyCenter(bus: state.center.bus),
            keeper: Keeper(),
            isDisabled: state.isDisabled,
            isChild: true,
            inherited: Inherited(state)
        )
        table.restart()
    }

    /// Does once what a child may do.
    ///
    /// What Swift's runtime makes at its first use, the descriptions of types above all, it makes under locks of its own.
    /// A child finds such a lock held for ever if another thread of its parent held it at that moment; so a child must
    /// find everything made. It costs 0.3 ms, once.
    private static func rehearse() {
        let engine = TokenEngine(center: NotifyCenter(bus: .session))
        engine.wasForked.store(true, ordering: .relaxed)
        engine.setDisabled(true)
        try? engine.post("rehearsal")
        var token: Int32 = 0
        try? engine.register("rehearsal", .none, token: &token)
        for name in ["self.rehearsal", "self.rehearsal"] {
            var other: Int32 = 0
            var descriptor: Int32 = 0
            try? engine.register(name, .none, token: &token)
            try? engine.register(name, descriptor: &descriptor, flags: 0, token: &other)
            _ = (engine.check(token), engine.posts(token), engine.isValid(token))
            try? engine.suspend(other)
            try? engine.post(name)
            try? engine.resume(other)
            try? engine.post(name)
            try? engine.register(name, signal: 0, token: &descriptor)
            try? engine.setState(1, of: token)
            _ = try? engine.state(of: token)
            try? engine.monitorFile(token, path: "/")
            try? engine.suspend(process: 0)
            try? engine.resume(process: 1)
            try? engine.cancel(other)
            try? engine.cancel(token)
            try? engine.cancel(token)
        }
        engine.setOptions(0x0400_0000)
        engine.close()
    }
}

/// The state of a parent, in its child.
final class Inherited {
    private let state: TokenEngine.State
    init(_ state: TokenEngine.State) { self.state = state }
}
