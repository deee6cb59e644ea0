// SPDX-License-Identifier: Apache-2.0

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
/// A center lives as long as you keep it or one of its observations. Releasing it does not block; what was posted before
/// there was a connection is still written if there is a bus.
public final class NotifyCenter: Sendable {
    /// The center for the session bus, shared by the whole process.
    public static let session = NotifyCenter(bus: .session)
    /// The center for the system bus, shared by the whole process.
    public static let system = NotifyCenter(bus: .system)

    /// The bus of this center.
    public let bus: Bus
    let engine: Engine
    /// The observer's half of the lifecycle protocol; nil for the agent itself and for clients that only talk to it.
    let peer: LifecyclePeer?
    let connection = ConnectionChanges()

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
        self.init(bus: bus, waitsForBus: waitsForBus, onConnectionChange: nil)
    }

    /// Creates a center that reports more.
    ///
    /// - Parameters:
    ///   - onConnectionChange: called when the observing connection is lost and when it is restored, on the center's
    ///     thread, serialized with the callbacks of observers.
    ///   - onPost: receives the name and the unique name of the poster's connection, valid until it returns, on the
    ///     thread that reads at the time, one at a time: it must not block. It may be a thread that adds an observer.
    ///     Posts heard through an agent while the program was suspended are left out.
    package init(
        bus: Bus,
        waitsForBus: Bool = false,
        onConnectionChange: (@Sendable (ConnectionChange) -> Void)?,
        onPost: (@Sendable (NotifyName, UnsafePointer<CChar>) -> Void)? = nil
    ) {
        self.bus = bus
        let receiver = Receiver(
            BusLink(bus: bus, answerLimit: nil),
            onConnectionChange: { [connection] change, isReturn in
                connection.report(change)
                if isReturn { onConnectionChange?(change) }
            },
            onPost: onPost
        )
        receiver.connectionState = connection
        peer = LifecyclePeer(receiver)
        engine = Engine(receiver, waitsForBus: waitsForBus) { [connection] in connection.report(posting: $0) }
    }

    /// Creates a center whose observing connection also serves a peer.
    ///
    /// - Parameter other: belongs to the threads of the center from now on.
    package init(bus: Bus, peer other: sending any BusPeer) {
        self.bus = bus
        peer = nil
        let link = BusLink(bus: bus)
        link.peer = other
        engine = Engine(Receiver(link))
    }

    deinit {
        // Whoever releases the last reference may hold something that one of its threads waits for.
        engine.stopOnceConnected()
        endChanges()
    }

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
        let ending = engine.close(until: .after(timeout))
        endChanges()
        try ending.get()
    }

    /// Closes the center without waiting.
    ///
    /// - Parameter completion: called once no callback is running; at once, or on the thread that ran the last one.
    package func close(then completion: @escaping @Sendable () -> Void) {
        engine.close(then: completion)
        endChanges()
    }

    private func endChanges() {
        peer?.states.end()
        connection.end()
    }

    /// The counters of the center.
    public var statistics: Statistics { engine.counters.statistics }

    /// How many posts are waiting to be written, because there is no connection yet or the bus does not keep up.
    public var waitingPosts: Int { engine.process?.waitingCount(of: engine) ?? engine.outbox.waitingCount }

    /// Opens the observing connection, and keeps it open as long as the peer needs it.
    package func open() throws(NotifyBusError) {
        try engine.start()
        if engine.process == nil { engine.command(.open) }
    }

    /// Runs a closure with the observing connection, on the thread that reads.
    ///
    /// - Returns: false if the center is closed, and it does not run.
    @discardableResult
    package func perform(_ body: @escaping @Sendable (BusLink) -> Void) -> Bool {
        engine.command(.perform(body))
    }
}
