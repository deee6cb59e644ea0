// SPDX-License-Identifier: Apache-2.0

import CForkGuard

/// The inside of a center: the registry of observers, the connection for reading, the one for posting, and the threads
/// that serve both.
///
/// Everything but the counters is created when first needed: a center that only posts has no threads.
final class Engine: CallbackThread {
    enum Life { case idle, running(EngineThreads), stopped }

    /// The work of the thread that runs callbacks.
    enum Work: Sendable {
        case drain(Observer)
        case call(@Sendable () -> Void)
    }

    struct Registered {
        private var all = ObjectTable<Observer>()
        private var isClosed = false

        /// - Returns: false if the center accepts no more.
        mutating func add(_ observer: Observer) -> Bool {
            if !isClosed { all.set(observer, for: Registered.address(of: observer)) }
            return !isClosed
        }

        /// Accepts no more.
        ///
        /// - Returns: those that there are.
        mutating func close() -> [Observer] {
            isClosed = true
            var observers: [Observer] = []
            all.forEach { observers.append($0) }
            return observers
        }

        /// - Returns: whether it was present.
        mutating func remove(_ observer: Observer) -> Bool {
            all.remove(Registered.address(of: observer)) != nil
        }

        private static func address(of observer: Observer) -> UInt64 {
            UInt64(UInt(bitPattern: ObjectIdentifier(observer)))
        }
    }

    struct Delivery {
        /// Whether a thread is running callbacks. Only one ever does, so that callbacks never overlap.
        var isTaken = false
        var ready: [Work] = []

        mutating func takeReady() -> [Work] {
            if ready.isEmpty { return [] }
            defer { ready = [] }
            return ready
        }
    }

    let counters: Counters
    let registry: Registry
    let outbox: Outbox
    /// `nonisolated(unsafe)`: only the leading thread touches what changes in it. The lead passes between threads by an
    /// atomic exchange, which orders what both do.
    nonisolated(unsafe) let observing: Receiver
    let delivery = Monitor(Delivery())
    /// Everyone registered with this center.
    let observers = Monitor(Registered())
    /// Notified of each post of this center.
    let localEcho = LocalEcho()
    /// Whether every registration is kept if there is no bus, and completed when there is one.
    let waitsForBus: Bool
    private let life = Monitor(Life.idle)
    /// The bus, if it is inside this process.
    let process: ProcessBus?
    /// Told of each change of the posting connection, with the callbacks.
    let onPostingChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)?

    /// - Parameter observing: belongs to the engine's threads from now on.
    init(
        _ observing: Receiver,
        waitsForBus: Bool = false,
        onPostingChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)? = nil
    ) {
        self.waitsForBus = waitsForBus
        self.onPostingChange = onPostingChange
        self.observing = observing
        counters = observing.counters
        registry = observing.registry
        outbox = Outbox(bus: observing.link.bus, counters: observing.counters, ownName: observing.ownName)
        process = observing.link.bus.process
        observing.callbacks = self
        process?.join(self)
    }

    var threads: EngineThreads? {
        life.withLock { life in
            if case .running(let threads) = life { threads } else { nil }
        }
    }

    var isStopped: Bool {
        life.withLock { life in
            if case .stopped = life { true } else { false }
        }
    }

    /// Starts the threads, unless they are running.
    func start() throws(NotifyBusError) {
        // The threads have stayed in the parent, along with any locks they held.
        if fork_is_cut_off() { throw .forked }
        try life.withLock { life throws(NotifyBusError) in
            switch life {
            case .running: return
            case .stopped: throw .closed
            case .idle: break
            }
            life = .running(try startThreads())
        }
    }

    private func startThreads() throws(NotifyBusError) -> EngineThreads {
        let threads = try EngineThreads()
        // The threads keep the engine alive until they exit.
        try threads.start(
            lead: { number in self.lead(as: number, of: threads) },
            isUnreachable: { self.replace(threads) }
        )
        return threads
    }

    /// Starts other threads in place of those that nothing can wake any more, because the program has closed their
    /// descriptors. A thread of theirs that sleeps in poll(2) does so for good.
    func replace(_ threads: EngineThreads) {
        life.withLock { life in
            guard case .running(let current) = life, current === threads, threads.takeLead() else { return }
            threads.stop(waits: false)
            // Without threads, the next registration starts them.
            if let others = try? startThreads() { life = .running(others) } else { life = .idle }
        }
    }

    /// Stops the threads, and waits for them if asked to, unless the caller is one of them.
    func stop(waits: Bool = true) {
        let threads: EngineThreads? = life.withLock { life in
            defer { life = .stopped }
            if case .running(let threads) = life { return threads }
            return nil
        }
        threads?.stop(waits: waits)
        process?.leave(self)
        outbox.close()
        registry.close()
    }

    /// Schedules work for the leader.
    ///
    /// - Returns: whether it will be carried out; not once the center is closed.
    @discardableResult
    func command(_ command: Registry.Command) -> Bool {
        let isAccepted = registry.append(command)
        if isAccepted { wake() }
        return isAccepted
    }

    /// Stops the threads without waiting, once posts that wait for the first connection, or for the next one, are written,
    /// or there turns out to be no bus.
    func stopOnceConnected() {
        guard outbox.awaitsConnection, threads != nil else { return stop(waits: false) }
        let isNeeded = outbox.open(Barrier { _ in self.enqueue { self.stop(waits: false) } })
        if isNeeded { wake() }
    }

    /// Makes the reading thread check for work.
    func wake() {
        guard let threads, !threads.wakeDescriptor.signal() else { return }
        replace(threads)
    }

    /// Must be called before waiting for something that the reading thread brings.
    func prepareToWait() {
        threads?.prepareToWait()
    }
}

extension Engine: ProcessBusMember {
    func hear(_ name: NotifyName, from poster: Counters) {
        for observer in registry.audience(of: name).observers where !(observer.ignoresOwnPosts && poster === counters) {
            observer.offer(name)
        }
    }

    func busHasChanged() {
        guard let change = present else { return }
        if change == .connected {
            registry.settleWaiting()
            counters.reconnects.increment()
        }
        guard let onPostingChange else { return }
        if threads == nil { onPostingChange(change) } else { enqueue { onPostingChange(change) } }
    }

    /// Whether there is a connection for posting; nil if none was tried.
    var present: NotifyCenter.ConnectionChange? {
        guard let process else { return outbox.present }
        return process.isConnected ? .connected : .disconnected(.disconnected)
    }

    /// Whether what was posted waits for the bus in this process. It is there, or it isn't: nothing is to be waited for.
    func checkProcess(_ process: ProcessBus, hasWritten: Bool = false) throws(NotifyBusError) {
        if isStopped { throw .closed }
        if hasWritten ? process.waitingCount(of: self) > 0 : !process.isConnected { throw .disconnected }
    }
}
