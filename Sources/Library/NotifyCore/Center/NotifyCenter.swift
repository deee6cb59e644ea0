// SPDX-License-Identifier: Apache-2.0

/// A Darwin-style notification center over D-Bus: it broadcasts names, without any payload.
///
/// ```swift
/// let center = NotifyCenter.session
/// let observation = try center.addObserver(for: "com.example.backup.done") { name in
///     print("heard", name)
/// }
/// try center.post("com.example.backup.done")
/// ```
///
/// A center opens no connection before its first use. Then it keeps up to two private connections to the bus: one for
/// posting and, once there are observers, one for reading. It can be used from any thread. If the bus goes away, the
/// center reconnects and registers every observer again.
///
/// A center lives as long as you keep it or one of its observations. Releasing it does not block.
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
    /// ``ConnectionChange/Kind/reconnected`` follows. Anything posted before that is not heard. Posting fails as in any
    /// other center.
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
            onConnectionChange: { [connection] loss in
                let change = loss.map { ConnectionChange.disconnected($0) } ?? .reconnected
                onConnectionChange?(change)
                connection.report(change)
            },
            onPost: onPost
        )
        peer = LifecyclePeer(receiver)
        engine = Engine(receiver, waitsForBus: waitsForBus)
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
        engine.stop(waits: false)
        endChanges()
    }

    /// Closes the center: its observers hear nothing more, and posting throws an error with the code `closed`.
    ///
    /// Do not call this while you hold something that a callback waits for, such as a lock or the main queue: it waits
    /// for a callback that is running in another thread. Inside a callback it does not wait for that one.
    ///
    /// When this returns, no callback is running (except the one that made this call) and none will run. Posts still
    /// waiting to be written are lost and counted as dropped; call `flush(timeout:)` first if they matter. This blocks
    /// the thread while a callback is running; asynchronous code uses a form that does not.
    public func close() {
        engine.close()
        endChanges()
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
    public var statistics: Statistics {
        engine.counters.statistics(waiting: engine.outbox.waitingCount)
    }

    /// Opens the observing connection, and keeps it open as long as the peer needs it.
    package func open() throws(NotifyBusError) {
        try engine.start()
        engine.command(.open)
    }

    /// Runs a closure with the observing connection, on the thread that reads.
    ///
    /// - Returns: false if the center is closed, and it does not run.
    @discardableResult
    package func perform(_ body: @escaping @Sendable (BusLink) -> Void) -> Bool {
        engine.command(.perform(body))
    }
}
