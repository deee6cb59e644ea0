// SPDX-License-Identifier: Apache-2.0

import NotifyCore

// None of the calls that suspend a task needs a thread while it waits, and none has a timeout: cancel the task. Those that have
// one block the thread.

extension NotifyCenter {
    /// Posts a notification to every observer of its name, in all processes on the bus, including this one.
    ///
    /// This never blocks. A post is written at once or, if there is no connection yet or the bus does not keep up, queued in
    /// the center, which opens a connection and writes what is queued when it can. Up to 4,096 posts are queued
    /// individually; beyond that, a post whose name is already queued is coalesced with the queued one, and new names are
    /// queued up to 65,536 in all. Posts from one thread reach each observer in order. It is not an error if the name
    /// has no observer.
    ///
    /// So a post that has returned may still be waiting: without a bus it waits until there is one. ``connectionChanges()``
    /// and ``isConnected`` say whether there is, ``waitingPosts`` how many wait, and those that were waiting when the center
    /// was closed are counted as ``Statistics/lost``. To know at once whether there is a bus, call `connect()` first; to
    /// know that what was posted is written, `flush()` afterwards.
    ///
    /// The bus does not keep up when it is not reading; dbus-broker also when it has not yet written the last 256 posts
    /// to observers that read promptly. This keeps a storm of posts from piling up in the bus until it disconnects a
    /// program.
    ///
    /// When the program returns from `main` or calls `exit`, queued posts are written first, for at most 1 second.
    /// `_exit`, `exec` and signals end it immediately, and queued posts are lost.
    ///
    /// The corresponding C function is `notify_post`, which first waits for a connection.
    ///
    /// - Throws: ``NotifyBusError`` with the code `notPermitted` if the name belongs to someone else, `queueFull` if 65,536
    ///   names are queued, `forked` in the child of a process that used the bus, `closed` after the center was closed, or
    ///   `failed` if the system is out of threads or descriptors. Nothing was posted then.
    public func post(_ name: NotifyName) throws(NotifyBusError) {
        do throws(CoreError) {
            try core.post(name.core)
        } catch {
            core.noteRefused(name.core, error)
            throw NotifyBusError(error)
        }
    }

    /// Connects to the bus, unless the center is connected, and waits until the bus has accepted that. Blocks the thread.
    ///
    /// Nothing needs this: posting and observing connect by themselves. It is for programs that want to know at once
    /// whether there is a bus.
    ///
    /// - Parameter timeout: how long to wait, at most 10 seconds.
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached, `timedOut` if it
    ///   does not answer in time, `forked`, `closed`, or `failed` if the system is out of threads or descriptors.
    @available(*, noasync, message: "It blocks the thread; use 'await connect()'.")
    public func connect(timeout: Duration) throws(NotifyBusError) {
        try rethrowing { () throws(CoreError) in try core.connect(timeout: timeout) }
    }

    /// Connects to the bus, unless the center is connected, and suspends the task until the bus has accepted that.
    ///
    /// Nothing needs this: posting and observing connect by themselves. It is for programs that want to know at once
    /// whether there is a bus.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus cannot be reached, `timedOut` if it
    ///   does not answer within 10 seconds, `cancelled`, `forked`, `closed`, or `failed` if the system is out of threads
    ///   or descriptors.
    public func connect() async throws(NotifyBusError) {
        let opening = Completion<Void>()
        try rethrowing { () throws(CoreError) in try core.connect { opening.complete($0) } }
        try await opening.value()
    }

    /// Waits until every earlier post is written to the bus's socket. Blocks the thread.
    ///
    /// To have every single post delivered, flush at least once in 4,096 posts: then none is coalesced.
    ///
    /// - Parameter timeout: how long to wait; nil means without limit.
    /// - Throws: ``NotifyBusError`` with the code `timedOut`, `noBus` or `disconnected` if the bus is away, `failed` if the
    ///   system has no thread or descriptor left, or `closed`. The posts go on waiting.
    @available(*, noasync, message: "It blocks the thread; use 'await flush()'.")
    public func flush(timeout: Duration?) throws(NotifyBusError) {
        try rethrowing { () throws(CoreError) in try core.flush(timeout: timeout) }
    }

    /// Suspends the task until every earlier post is written to the bus's socket.
    ///
    /// To have every single post delivered, flush at least once in 4,096 posts: then none is coalesced.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus is away, `closed`, or `cancelled`.
    ///   The posts go on waiting.
    public func flush() async throws(NotifyBusError) {
        let written = Completion<Void>()
        core.flush { written.complete($0) }
        try await written.value()
    }

    /// Waits until the bus has accepted every earlier post and routed it to the observers' connections. Blocks the
    /// thread.
    ///
    /// This takes one round trip to the bus in addition to `flush(timeout:)`.
    ///
    /// - Parameter timeout: how long to wait; nil means without limit.
    /// - Throws: ``NotifyBusError`` with the code `timedOut`, `noBus` or `disconnected` if the bus is away, or `closed`.
    @available(*, noasync, message: "It blocks the thread; use 'await synchronize()'.")
    public func synchronize(timeout: Duration?) throws(NotifyBusError) {
        try rethrowing { () throws(CoreError) in try core.synchronize(timeout: timeout) }
    }

    /// Suspends the task until the bus has accepted every earlier post and routed it to the observers' connections.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` or `disconnected` if the bus is away, `closed`, or `cancelled`.
    public func synchronize() async throws(NotifyBusError) {
        try await connect()
        let routed = Completion<Void>()
        try rethrowing { () throws(CoreError) in try core.synchronize { routed.complete($0) } }
        try await routed.value()
    }
}
