// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension NotifyCenter {
    /// Posts a notification to every observer of its name, in all processes on the bus, this one too.
    ///
    /// The first post opens the connection, on the caller's thread; other threads that post meanwhile wait for that. After
    /// that a post never blocks: it is written at once, or, while the bus does not keep up, it waits in the center. Up to
    /// 4,096 posts are queued individually; beyond that a post whose name already waits is coalesced with the waiting one,
    /// and a new name waits as well, up to 65,536 in all. Posts from one thread reach each observer in order. That nobody
    /// observes the name is not an error.
    ///
    /// The bus does not keep up when it does not read; dbus-broker also when it has not yet written the last 256 posts to
    /// observers that read at once. So a storm of posts does not pile up in it, until it disconnects somebody.
    ///
    /// When the program returns from `main` or calls `exit`, the posts that still wait are written first, for 1 second at
    /// most. `_exit`, `exec` and signals end it at once, and the posts that wait are lost.
    ///
    /// The corresponding C function is `notify_post`.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached, `queueFull`
    ///   if 65,536 names wait, `notPermitted` if the name belongs to someone else, `timedOut` if the bus does not let
    ///   the program in within 10 seconds, `forked` in the child of a process that used the bus, `closed` after
    ///   `close()`. The post was not made then.
    public func post(_ name: NotifyName) throws(NotifyBusError) {
        if linux_is_cut_off() { throw .forked }
        switch name.storage.scope {
        case .process:
            if engine.isStopped { throw .closed }
            engine.counters.posted.increment()
            ProcessHub.post(name, by: engine.counters)
            return engine.witness.see(name)
        case .ordinary: break
        case .owned, .reserved: try checkPermission(name)
        }
        if try engine.outbox.post(name) {
            ExitFlush.cover(engine.outbox)
            try engine.start()
            engine.wake()
        }
        engine.witness.see(name)
    }

    /// Posts a notification by a name given as a string. See `post(_:)`.
    ///
    /// - Throws: what that method throws, and an error with the code `invalidName` if the string is not a name.
    public func post(_ name: String) throws(NotifyBusError) {
        if linux_is_cut_off() { throw .forked }
        // To find a name that was posted before takes a tenth of making it.
        let recent = name.utf8.withContiguousStorageIfAvailable {
            engine.outbox.recentName(UnsafeRawBufferPointer($0))
        }
        if let recent = recent ?? nil { try post(recent) } else { try post(NotifyName(name)) }
    }

    /// Whether a post of this name waits for nothing: the bus has let the program in, or is not needed.
    package func canPostAtOnce(_ name: NotifyName) -> Bool {
        name.staysInProcess || engine.outbox.wasOpen
    }

    /// Whether `flush(timeout:)` has nothing to wait for.
    package var isFlushed: Bool { engine.outbox.waitingCount == 0 }

    /// Waits until every earlier post is written to the bus's socket. Blocks the thread.
    ///
    /// Who wants every post counted posts and flushes, at least once in 4,096 posts: then none is coalesced.
    ///
    /// - Parameter timeout: how long to wait; nil means as long as it takes.
    /// - Throws: ``NotifyBusError`` with the code `timedOut`, `disconnected` if the bus is away, or `closed`.
    public func flush(timeout: Duration? = nil) throws(NotifyBusError) {
        if engine.outbox.isWritten { return }
        engine.prepareToWait()
        try engine.outbox.flush(until: .after(timeout))
    }

    /// Waits until the bus has taken every earlier post and passed it on to the observers' connections. Blocks the thread.
    ///
    /// This takes one round trip to the bus more than `flush(timeout:)`.
    ///
    /// - Parameter timeout: how long to wait; nil means as long as it takes.
    /// - Throws: ``NotifyBusError`` with the code `timedOut`, `noBus` or `disconnected` if the bus is away, or `closed`.
    public func synchronize(timeout: Duration? = nil) throws(NotifyBusError) {
        let deadline = MonotonicTime.after(timeout)
        let barrier = Barrier()
        // A program that only posts, as notify-post does, gets along without threads: starting two costs it 0.4 ms.
        if engine.threads == nil, engine.outbox.waitingCount == 0 {
            try engine.outbox.raise(barrier, until: deadline)
            return try engine.outbox.serve(until: barrier, or: deadline)
        }
        try engine.start()
        engine.prepareToWait()
        try engine.outbox.raise(barrier, until: deadline)
        engine.wake()
        try barrier.wait(until: deadline)
    }

    /// The same for a program that ends afterwards: waits as well until an agent that starts programs for names has asked
    /// the bus who has posted, which can say it only of those that are still there. Half a second at most.
    package func synchronizeToEnd(timeout: Duration? = nil) throws(NotifyBusError) {
        let deadline = MonotonicTime.after(timeout)
        guard engine.threads == nil, engine.outbox.waitingCount == 0 else { return try synchronize(timeout: timeout) }
        let (taken, asked) = (Barrier(), Barrier())
        try engine.outbox.raise(taken, until: deadline)
        try engine.outbox.raise(asked, by: .launcher, until: deadline)
        try engine.outbox.serve(until: taken, or: deadline)
        try? engine.outbox.serve(until: asked, or: MonotonicTime.earlier(deadline, .now + 500))
    }

    /// Has somebody told of each post of this center at once, on the thread that posts; nil ends that.
    package func setPostWitness(_ witness: (@Sendable (NotifyName) -> Void)?) {
        engine.witness.set(witness)
    }

    /// A denied broadcast gives no error on D-Bus, so who may post is checked here first.
    private func checkPermission(_ name: NotifyName) throws(NotifyBusError) {
        let user = geteuid()
        if name.isReserved, bus == .system, user != 0 {
            throw NotifyBusError(
                .notPermitted,
                "The name '\(name)' is reserved for the system: on the system bus only root can post it."
            )
        }
        if !name.isOpen(to: user) {
            throw NotifyBusError(
                .notPermitted,
                "The name '\(name)' belongs to another user; user \(user) can post user.uid.\(user) and names below it."
            )
        }
    }
}
