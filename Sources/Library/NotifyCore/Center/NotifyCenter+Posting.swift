// SPDX-License-Identifier: Apache-2.0

import CForkGuard
import Glibc

extension NotifyCenter {
    /// Posts a notification to every observer of its name, and never blocks: it is written at once, or queued.
    ///
    /// When the program returns from `main` or calls `exit`, queued posts are written first, for at most 1 second.
    package func post(_ name: NotifyName) throws(NotifyBusError) {
        guard try !postInProcess(name) else { return }
        if let needsLeader = try engine.outbox.postAtOnce(name) {
            if needsLeader { try wakeLeader() }
        } else {
            // Without a thread that opens a connection it would wait for ever.
            try engine.start()
            ExitFlush.cover(engine.outbox)
            try engine.outbox.postLater(name)
            engine.wake()
        }
        engine.localEcho.note(name)
    }

    /// Posts a notification, but waits for a connection first if there is none: for commands and C programs, which
    /// want to know that there is a bus. The first one is opened on the caller's thread.
    ///
    /// - Throws: what `post(_:)` throws; also ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be
    ///   reached, or `timedOut` if it does not accept the connection within 10 seconds. Nothing was posted then.
    package func postOnceConnected(_ name: NotifyName) throws(NotifyBusError) {
        guard try !postInProcess(name) else { return }
        if try engine.outbox.postOnceConnected(name) { try wakeLeader() }
        engine.localEcho.note(name)
    }

    /// Posts a name that does not leave the process, and checks any other.
    ///
    /// - Returns: whether it was posted.
    @inline(__always)
    private func postInProcess(_ name: NotifyName) throws(NotifyBusError) -> Bool {
        if fork_is_cut_off() { throw .forked }
        switch name.storage.scope {
        case .process where engine.process == nil:
            if engine.isStopped { throw .closed }
            engine.counters.posted.increment()
            ProcessHub.post(name, by: engine.counters)
            engine.localEcho.note(name)
            return true
        case .ordinary, .process: break
        case .owned, .reserved: try checkPermission(toPost: name)
        }
        guard let process = engine.process else { return false }
        try process.post(name, by: engine)
        engine.localEcho.note(name)
        return true
    }

    /// Has the leader write what is queued.
    private func wakeLeader() throws(NotifyBusError) {
        ExitFlush.cover(engine.outbox)
        do throws(NotifyBusError) {
            try engine.start()
            engine.wake()
        } catch {
            if error.code == .closed { throw error }
            // It is queued, and will be written once there is a thread again.
            engine.outbox.noteLackOfLeader()
        }
    }

    /// Connects to the bus, unless the center is connected, and waits until the bus has accepted that.
    ///
    /// - Parameter timeout: how long to wait, at most 10 seconds.
    package func connect(timeout: Duration) throws(NotifyBusError) {
        if fork_is_cut_off() { throw .forked }
        if let process = engine.process { return try engine.checkProcess(process) }
        let deadline = MonotonicTime.after(timeout)
        // A program that only posts needs no threads: starting two would take it 0.4 ms.
        if engine.threads == nil, try !engine.outbox.open(until: deadline) { return }
        let barrier = Barrier()
        try openForPosting(barrier)
        engine.prepareToWait()
        try barrier.wait(until: deadline, for: "accept the connection")
    }

    /// The same without waiting.
    ///
    /// - Parameter completion: called once with the outcome, in this call or on the thread that reads.
    package func connect(
        then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) {
        if let process = engine.process {
            try engine.checkProcess(process)
            return completion(.success(()))
        }
        try openForPosting(Barrier(completion))
    }

    private func openForPosting(_ barrier: Barrier) throws(NotifyBusError) {
        try engine.start()
        if engine.outbox.open(barrier) { engine.wake() }
    }

    /// Waits until every earlier post is written to the bus's socket.
    ///
    /// - Parameter timeout: how long to wait; nil means without limit.
    package func flush(timeout: Duration?) throws(NotifyBusError) {
        if let process = engine.process { return try engine.checkProcess(process, hasWritten: true) }
        if engine.outbox.isWritten { return }
        try engine.start()
        engine.wake()
        engine.prepareToWait()
        let barrier = Barrier()
        engine.outbox.flush(barrier)
        try barrier.wait(until: .after(timeout), for: "accept all posts")
    }

    /// The same without waiting.
    package func flush(then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void) {
        if engine.process == nil, engine.outbox.isWritten { return completion(.success(())) }
        do throws(NotifyBusError) {
            if let process = engine.process {
                try engine.checkProcess(process, hasWritten: true)
                return completion(.success(()))
            }
            try engine.start()
        } catch {
            return completion(.failure(error))
        }
        engine.wake()
        engine.outbox.flush(Barrier(completion))
    }

    /// Waits until the bus has accepted every earlier post and routed it to the observers' connections: one round trip more
    /// than `flush(timeout:)`.
    ///
    /// - Parameter timeout: how long to wait; nil means without limit.
    package func synchronize(timeout: Duration?) throws(NotifyBusError) {
        if let process = engine.process { return try engine.checkProcess(process) }
        let deadline = MonotonicTime.after(timeout)
        let barrier = Barrier()
        let waits = try raise([(barrier, .bus)], until: deadline)
        try waits(barrier)
    }

    /// Asks questions behind every earlier post.
    ///
    /// - Returns: what waits for the answer to one of them.
    private func raise(
        _ questions: [(Barrier, Outbox.Question)],
        until deadline: MonotonicTime?
    ) throws(NotifyBusError) -> (Barrier) throws(NotifyBusError) -> Void {
        // A program that only posts, such as notify-post, needs no threads: starting two would take it 0.4 ms.
        let needsThreads = engine.threads != nil || engine.outbox.waitingCount != 0
        if needsThreads {
            try engine.start()
            engine.prepareToWait()
        }
        for (barrier, question) in questions { try engine.outbox.raise(barrier, by: question, until: deadline) }
        guard needsThreads else {
            return { [outbox = engine.outbox] barrier throws(NotifyBusError) in
                try outbox.serve(until: barrier, or: deadline)
            }
        }
        engine.wake()
        return { barrier throws(NotifyBusError) in try barrier.wait(until: deadline) }
    }

    /// The same without waiting, once `connect` has succeeded.
    package func synchronize(
        then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) throws(NotifyBusError) {
        if let process = engine.process {
            try engine.checkProcess(process)
            return completion(.success(()))
        }
        try engine.start()
        try engine.outbox.raise(Barrier(completion), until: nil)
        engine.wake()
    }

    /// The same for a program that is about to exit: also waits until an agent that starts programs for names has asked
    /// the bus who posted, which the bus knows only while the poster is connected.
    ///
    /// - Returns: whether the agent has asked in time, if there is one. The posts are accepted in any case.
    package func synchronizeToEnd(timeout: Duration) throws(NotifyBusError) -> Bool {
        if let process = engine.process {
            try engine.checkProcess(process)
            return true
        }
        let (taken, asked) = (Barrier(), Barrier())
        let waits = try raise([(taken, .bus), (asked, .launcher)], until: .after(timeout))
        try waits(taken)
        do throws(NotifyBusError) {
            try waits(asked)
            return true
        } catch {
            return error.code != .timedOut
        }
    }

    /// Passes each post of this center to a closure, on the posting thread; nil ends that.
    package func setLocalEcho(_ hear: (@Sendable (NotifyName) -> Void)?) {
        engine.localEcho.set(hear)
    }

    /// D-Bus reports no error for a denied broadcast, so permission to post is checked here first.
    package func checkPermission(toPost name: NotifyName) throws(NotifyBusError) {
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
