// SPDX-License-Identifier: Apache-2.0

import CForkGuard
import Glibc
import NotifyCore
import Synchronization

extension TokenEngine {
    /// The engine of this process, if there is one: unlike ``shared``, for signal handlers too.
    @inline(__always)
    static var existing: Unmanaged<TokenEngine>? {
        // Nothing generic that is not inlined: also in a debug build this must not create objects. See `rehearse`.
        guard let object = fork_object() else { return nil }
        return .fromOpaque(object)
    }

    /// Creates the engine of this process. Forks wait for that, so a child finds all of it or nothing.
    static func makeShared() -> TokenEngine {
        fork_delay()
        defer { fork_allow() }
        TokenEngine.rehearse()
        let engine = TokenEngine(center: BusChoice.center)
        let retained = Unmanaged.passRetained(engine)
        // Otherwise another thread has made it meanwhile.
        if fork_set_object(retained.toOpaque()) { surviveForks() } else { retained.release() }
        return shared
    }

    /// Ensures that the child of fork(2) finds the lock free, and starts without registrations.
    private static func surviveForks() {
        fork_hooks(
            { TokenEngine.shared.state.lockForFork() },
            { TokenEngine.shared.state.unlockAfterFork() },
            {
                // Only this may happen immediately: see signal-safety(7).
                TokenEngine.shared.table.abandon()
                TokenEngine.shared.wasForked.store(true, ordering: .relaxed)
                TokenEngine.shared.state.renewAfterFork()
            }
        )
    }

    /// Starts over in a child, with the lock held.
    func beginInChild(_ state: inout State) {
        wasForked.store(false, ordering: .relaxed)
        // The old state belongs to threads that the child does not have, and may be locked by them: it is left alone as
        // long as the engine exists, and not even released.
        state = State(
            center: NotifyCenter(bus: state.center.bus),
            deferredWork: DeferredWork(),
            isDisabled: state.isDisabled,
            isChild: true,
            inherited: Inherited(state)
        )
        table.restart()
    }

    /// Does once everything that a child may do.
    ///
    /// Swift's runtime creates some objects on first use, mainly type metadata, under locks of its own. If another
    /// thread of the parent holds such a lock at the time of the fork, the child finds it locked forever, so everything
    /// must exist before. This takes 0.4 ms, once.
    private static func rehearse() {
        let engine = TokenEngine(center: NotifyCenter(bus: .session))
        engine.wasForked.store(true, ordering: .relaxed)
        engine.setDisabled(true)
        try? engine.post("rehearsal")
        for notAName in [[0], [-1, 0]] as [[CChar]] { try? engine.post(notAName) }
        var token: Int32 = 0
        try? engine.register("rehearsal", .none, token: &token)
        for name in ["self.rehearsal", "self.rehearsal"] {
            var (other, signalled, descriptor): (Int32, Int32, Int32) = (0, 0, 0)
            try? engine.register(name, .none, token: &token)
            try? engine.register(name, descriptor: &descriptor, flags: 0, token: &other)
            _ = (engine.check(token), try? engine.posts(token), engine.isValid(token))
            try? engine.suspend(other)
            try? engine.post(name)
            try? engine.resume(other)
            try? engine.post(name)
            try? engine.register(name, signal: 0, token: &signalled)
            try? engine.setState(1, of: token)
            _ = try? engine.state(of: token)
            try? engine.monitorFile(token, path: "/")
            try? engine.suspend(process: 0)
            try? engine.resume(process: 1)
            let (pipe, deferredWork) = engine.state.withLock { ($0.pipes[descriptor], $0.deferredWork) }
            if let pipe {
                deferredWork.rehearse(pipe) {
                    try? engine.post(name)
                    pipe.forget(other)
                    try? engine.post(name)
                }
            }
            try? engine.cancel(other)
            try? engine.cancel(token)
            try? engine.cancel(token)
        }
        engine.setOptions(0x0400_0000)
        engine.close()
    }
}

/// The state inherited from a parent, in its child.
final class Inherited {
    private let state: TokenEngine.State
    init(_ state: TokenEngine.State) { self.state = state }
}
