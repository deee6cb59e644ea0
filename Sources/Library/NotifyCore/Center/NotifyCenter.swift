// SPDX-License-Identifier: Apache-2.0

/// A notification center, without Dispatch and Swift's concurrency library. The module NotifyBus has the public form, and says
/// what each call promises.
///
/// It opens no connection before its first use. Then it has up to two: one for posting and, once there are observers, one
/// for reading.
package final class NotifyCenter: Sendable {
    /// The center for the session bus, shared by the whole process.
    package static let session = NotifyCenter(bus: .session)
    /// The center for the system bus, shared by the whole process.
    package static let system = NotifyCenter(bus: .system)

    /// The bus of this center.
    package let bus: Bus
    let engine: Engine
    /// The observer's half of the lifecycle protocol; nil for the agent itself and for clients that only talk to it.
    let peer: LifecyclePeer?
    let connection = ConnectionChanges()

    /// Creates a center with connections of its own. It opens nothing yet.
    package convenience init(bus: Bus = .session, waitsForBus: Bool = false) {
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
        // The thread that releases the last reference may hold something that one of the center's threads waits for.
        engine.stopOnceConnected()
        endChanges()
    }

    /// Closes the center, and waits for a callback that is running in another thread.
    ///
    /// - Parameter timeout: how long to wait; nil means without limit.
    /// - Throws: `deadlock` or `timedOut`; the center is closed in any case.
    package func close(timeout: Duration?) throws(NotifyBusError) {
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
    package var statistics: Statistics { engine.counters.statistics }

    /// How many posts are waiting to be written, because there is no connection yet or the bus does not keep up.
    package var waitingPosts: Int { engine.process?.waitingCount(of: engine) ?? engine.outbox.waitingCount }

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

extension NotifyCenter {
    /// Whether the center is connected to its bus, as far as it knows; false before its first use.
    package var isConnected: Bool { (connection.current ?? engine.present)?.kind == .connected }

    /// Reports the present state of the connection, if anything is known of it, and its changes from now on, on the
    /// center's thread.
    ///
    /// - Returns: the number by which to end that.
    package func follow(_ follower: Follower<ConnectionChange>) -> (changes: ConnectionChanges, number: Int) {
        (connection, connection.add(follower, present: engine.present))
    }
}
