// SPDX-License-Identifier: Apache-2.0

/// A Darwin-style notification center over D-Bus: a broadcast that carries a name and nothing else.
///
/// ```swift
/// let center = NotifyCenter.session
/// let observation = try center.addObserver(forName: "com.example.backup.done") { name in
///     print("heard", name)
/// }
/// try center.post("com.example.backup.done")
/// ```
///
/// A center opens nothing until it is used. Then it keeps up to two private connections to the bus: one to post on,
/// and, once there are observers, one to read from. It can be used from any thread. When the bus goes away, the center
/// reconnects and makes every registration again.
///
/// A center lives as long as you keep it or one of its observations. To let go of it waits for nothing.
public final class NotifyCenter: Sendable {
    /// Which bus a center uses.
    public enum Bus: Hashable, Sendable {
        /// The bus of the user's login session, as `DBUS_SESSION_BUS_ADDRESS` or `$XDG_RUNTIME_DIR/bus` names it.
        case session
        /// The bus of the machine, as `DBUS_SYSTEM_BUS_ADDRESS` names it, or at its usual place.
        case system
        /// The bus at a D-Bus address, such as `unix:path=/run/user/1000/bus`.
        case address(String)
    }

    /// What a center tells about its observing connection.
    public enum ConnectionChange: Hashable, Sendable {
        /// The bus went away, or a center that waits for the bus did not find it; posts are not heard until `reconnected`.
        case disconnected(NotifyBusError)
        /// The bus is back, or there at last, and every registration was made.
        case reconnected
    }

    /// The center of the session bus that the whole process shares.
    public static let session = NotifyCenter(bus: .session)
    /// The center of the system bus that the whole process shares.
    public static let system = NotifyCenter(bus: .system)

    /// The bus of this center.
    public let bus: Bus
    let engine: Engine
    /// The observer's half of the lifecycle; nil for the agent itself and for those who only talk to it.
    let peer: LifecyclePeer?

    /// Makes a center of its own, with its own connections. It opens nothing yet.
    ///
    /// A center that waits for the bus is for a program that may start before it. To observe does not fail then because
    /// the bus cannot be reached or does not answer: it returns at once, `onConnectionChange` is called with
    /// ``ConnectionChange/disconnected(_:)``, and when the bus is there the registrations are made and
    /// ``ConnectionChange/reconnected`` follows. What was posted before that is not heard. To post fails as it does
    /// everywhere.
    ///
    /// - Parameters:
    ///   - bus: the bus to use.
    ///   - waitsForBus: whether observers are registered when the bus comes, if it is not there yet.
    ///   - onConnectionChange: called when the observing connection is lost and when it is made again, on the center's
    ///     thread, in turn with the callbacks of observers.
    public init(
        bus: Bus = .session,
        waitsForBus: Bool = false,
        onConnectionChange: (@Sendable (ConnectionChange) -> Void)? = nil
    ) {
        self.bus = bus
        let peer = LifecyclePeer()
        self.peer = peer
        engine = Engine(bus: bus, waitsForBus: waitsForBus, peer: peer, onConnectionChange: onConnectionChange)
    }

    /// Makes a center that also tells who posts what its observers hear.
    ///
    /// - Parameter onPost: is given the name and the unique name of the poster's connection, which is valid until it
    ///   returns, on the thread that reads: it must not wait. Posts that were heard in another way, by an agent while the
    ///   program was suspended, are left out.
    package init(
        bus: Bus,
        onConnectionChange: (@Sendable (ConnectionChange) -> Void)?,
        onPost: @escaping @Sendable (NotifyName, UnsafePointer<CChar>) -> Void
    ) {
        self.bus = bus
        let peer = LifecyclePeer()
        self.peer = peer
        engine = Engine(bus: bus, peer: peer, onConnectionChange: onConnectionChange, onPost: onPost)
    }

    /// Makes a center whose observing connection also speaks for a peer.
    package init(bus: Bus, peer: any BusPeer) {
        self.bus = bus
        self.peer = nil
        engine = Engine(bus: bus, peer: peer, onConnectionChange: nil)
    }

    deinit {
        // The last to let go of it may hold what one of its threads waits for.
        engine.stop(waits: false)
        peer?.states.end()
    }

    /// Closes the center: its observers hear nothing more, and posting throws an error with the code `closed`.
    ///
    /// When this returns, no callback runs (unless it is the one that called) and none will. Posts that still wait to
    /// be written are lost and counted as dropped; call `flush(timeout:)` first where they matter. This blocks the thread
    /// while a callback runs; asynchronous code gets the form that does not.
    public func close() {
        engine.close()
        peer?.states.end()
    }

    /// What the center has done so far.
    public var statistics: Statistics {
        engine.counters.statistics(waiting: engine.outbox.waitingCount)
    }

    /// Opens the observing connection, and keeps it as long as the peer wants.
    package func open() throws(NotifyBusError) {
        try engine.start()
        engine.command(.open)
    }

    /// Does something with the observing connection on the thread that reads.
    package func perform(_ body: @escaping @Sendable (borrowing BusLink) -> Void) {
        engine.command(.perform(body))
    }
}
