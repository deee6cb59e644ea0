// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A Darwin-style notification center over D-Bus: it broadcasts names, without any payload.
///
/// ```swift
/// let center = NotifyCenter.session
/// let observation = try await center.addObserver(for: "com.example.backup.done") { name in
///     print("heard", name)
/// }
/// try center.post("com.example.backup.done")
/// ```
///
/// A center opens no connection before its first use. Then it keeps up to two private connections to the bus: one for
/// posting and, once there are observers, one for reading. It can be used from any thread. If the bus goes away, the
/// center reconnects and registers every observer again.
///
/// A center lives as long as you keep it or one of its observations. Releasing it does not block; posts from before
/// there was a connection are still written if there is a bus.
public final class NotifyCenter: Sendable {
    /// The center for the session bus, shared by the whole process.
    public static let session = NotifyCenter(CoreCenter.session)
    /// The center for the system bus, shared by the whole process.
    public static let system = NotifyCenter(CoreCenter.system)

    package let core: CoreCenter

    package init(_ core: CoreCenter) { self.core = core }

    /// Creates a center with connections of its own. It opens nothing yet.
    ///
    /// A center that waits for the bus is for a program that may start before the bus. Observing then does not fail if
    /// the bus can't be reached or does not answer: it returns immediately, and the connection changes to
    /// ``ConnectionChange/Kind/disconnected``; once the bus is available, the observers are registered, and
    /// ``ConnectionChange/Kind/connected`` follows. Anything that others post before that is not heard.
    ///
    /// - Parameters:
    ///   - bus: the bus to use.
    ///   - waitsForBus: whether observers are registered once the bus is available, if it is not available yet.
    public convenience init(bus: Bus = .session, waitsForBus: Bool = false) {
        self.init(CoreCenter(bus: bus.core, waitsForBus: waitsForBus))
    }

    /// The bus of this center.
    public var bus: Bus { Bus(core.bus) }

    /// Whether the center is connected to its bus, as far as it knows.
    ///
    /// False before its first use. A connection that is lost is noticed at once if there is an observer, and otherwise
    /// when something is posted.
    public var isConnected: Bool { core.isConnected }

    /// The counters of the center.
    public var statistics: Statistics { Statistics(core.statistics) }

    /// How many posts are waiting to be written, because there is no connection yet or the bus does not keep up.
    public var waitingPosts: Int { core.waitingPosts }

    /// Whose posts the observers of this center can hear.
    ///
    /// In a Flatpak a proxy stands between the program and the bus, and lets no posts in, not even the program's own,
    /// which come from another connection. With the permission `--talk-name=org.notifybus.Relay1` the agent's relay
    /// hears for the program, and the answer is ``Visibility/everyone``; so it is with access to the whole bus.
    /// Otherwise, or if there turns out to be no relay when the first observer is added, it is
    /// ``Visibility/ownProgram``. Posts go out in any case, and names that begin with `self.` need no bus.
    ///
    /// The answer comes from `/.flatpak-info`, which is read once in a process; see flatpak-metadata(5). Where another
    /// sandbox has a proxy, set the environment variable `NOTIFYBUS_RELAY` to `yes`; with `no` the relay is not used.
    public var visibility: Visibility { core.obstacleToHearing == nil ? .everyone : .ownProgram }

    /// Closes the center: its observers hear nothing more, and posting throws an error with the code `closed`. Waits for a
    /// callback that is running in another thread, and blocks the thread meanwhile.
    ///
    /// Do not call this while you hold something that a callback waits for, such as a lock or the main queue. Inside a
    /// callback it does not wait for that one.
    ///
    /// When this has returned, no callback is running (except the one that made this call) and none will run. Posts still
    /// waiting to be written are lost and counted; call `flush(timeout:)` first if they matter.
    ///
    /// - Parameter timeout: how long to wait; nil means without limit.
    /// - Throws: ``NotifyBusError`` with the code `deadlock` if a callback that is running waits, perhaps by way of others,
    ///   for the end of the one that makes this call, or `timedOut`. The center is closed in any case: a callback may be
    ///   running, but none begins.
    @available(*, noasync, message: "It blocks the thread; use 'await close()'.")
    public func close(timeout: Duration?) throws(NotifyBusError) {
        try rethrowing { () throws(CoreError) in try core.close(timeout: timeout) }
    }

    /// Closes the center: its observers hear nothing more, and posting throws an error with the code `closed`. Suspends the
    /// task until no callback is running.
    ///
    /// Posts still waiting to be written are lost and counted; call `flush()` first if they matter. Do not wait for this
    /// inside a callback by other means, such as a semaphore. Cancelling the task does not cut this short.
    public func close() async {
        let closed = Completion<Void>()
        core.close { closed.complete(.success(())) }
        try? await closed.valueDespiteCancellation()
    }
}

extension NotifyCenter {
    /// Whose posts the observers of a center can hear. More kinds may be added.
    public struct Visibility: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        /// Those of every program on the bus.
        public static let everyone = Visibility(name: "everyone")
        /// Only what this program tells itself, by names that begin with `self.`, because its sandbox lets no other post
        /// in.
        public static let ownProgram = Visibility(name: "ownProgram")

        /// The name of the kind, for logs.
        public var description: String { name }
    }
}
