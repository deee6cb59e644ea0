// SPDX-License-Identifier: Apache-2.0

/// The connection for reading: it is opened for the first observer, makes every registration again when the bus comes
/// back, and determines who observes what arrives.
///
/// `@unchecked Sendable`: only the leading thread touches it. The lead passes between threads by an atomic exchange, which
/// orders what both do.
///
/// A run-time check for exclusive access takes some 60 instructions. The compiler omits it if it sees that each access
/// to a variable is instantaneous. So everything on the path of a delivery is a plain value or a reference to an
/// object, not a struct that mutates itself: `isUndisturbed` summarizes those.
final class ObservingConnection: @unchecked Sendable {
    private enum Phase { case closed, opening(until: MonotonicTime), ready }

    /// The purpose of a call to the bus.
    enum Question {
        case hello
        case rule(Topic, generation: Int)
        case wideRule(generation: Int)
        case barrier(Barrier)
        case call(@Sendable (BusAnswer, borrowing BusLink) -> Void)
    }

    /// How long the bus may take to answer Hello, in milliseconds.
    private static let openingLimit: Int64 = 10_000

    let bus: NotifyCenter.Bus
    private let onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)?
    /// Notified of each post that observers hear and of its sender; nil if nobody is interested.
    let onPost: (@Sendable (NotifyName, UnsafePointer<CChar>) -> Void)?
    let peer: (any BusPeer)?
    private var phase = Phase.closed
    private var retry = BackOff()
    var questions = BusCalls<Question>()
    /// Raised once the bus has accepted the connection.
    private var earlyBarriers: [Barrier] = []
    /// Whether this connection replaces one that was lost.
    private var isReplacement = false
    /// Whether somebody is waiting for a bus that was not found, and has been informed.
    private var isAwaited = false
    /// The bus that the connection is or was last on. See the D-Bus specification, "Server Addresses", `guid`.
    private var busIdentity: String?
    /// Whether this connection replaces one that the same bus cut off, along with posts that were not heard.
    private(set) var wasCutOff = false
    /// Whether the last connection, if any, was to another bus: the bus was restarted.
    private(set) var isOnAnotherBus = false
    /// Why there is no connection.
    private(set) var lossError: NotifyBusError?

    private(set) var connection: BusConnection?
    var uniqueName = ""
    /// Counts the sets of rules: one for each connection, and one for each opening of the gate. A topic remembers the
    /// set that its rules belong to.
    var generation = 0
    var reach = RuleReach()
    /// How many topics have yet to be registered again on a replacement connection.
    var unrestored = 0
    /// The senders' users, and pending queries.
    var users = UserDirectory()
    var senders = SenderDirectory() { didSet { noteDisturbance() } }
    var names = NameCache()
    let posts = PostCache()
    /// Whether others are heard by a relay, and not by rules on the bus.
    var hearsByRelay = false
    var relayed = RelayedPosts() { didSet { noteDisturbance() } }
    /// Whether posts may pass, and who decides on that.
    var lifecycle = ObserverLifecycle() { didSet { noteDisturbance() } }
    /// Whether the gate is open, and nothing is pending that precedes what is read.
    private(set) var isUndisturbed = true
    /// Topics that would be live, if only the agent had reported in which state this connection starts, or that it holds
    /// them for a suspended program.
    var heldTopics: [Topic] = []
    /// Represents the peer among the observers of the names that it holds.
    private var peerObserver: Observer?
    /// Represents the listener, and knows who sent the post that it is notified of.
    private var listenerObserver: Observer?
    private(set) var keepsSenders = false
    var postSender = ""
    /// When the leader began to work on what had arrived.
    var batchStart = MonotonicTime(nanoseconds: 0)

    init(
        bus: NotifyCenter.Bus,
        peer: (any BusPeer)?,
        onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)?,
        onPost: (@Sendable (NotifyName, UnsafePointer<CChar>) -> Void)? = nil
    ) {
        self.bus = bus
        self.peer = peer
        self.onConnectionChange = onConnectionChange
        self.onPost = onPost
    }

    private func noteDisturbance() {
        isUndisturbed =
            lifecycle.isOpen && !lifecycle.hasReplay && !senders.isHolding && !senders.hasVerified && relayed.isEmpty
    }

    var pollRequest: PollRequest {
        switch phase {
        case .closed: PollRequest(deadline: retry.time)
        case .opening(let limit): request(deadline: limit)
        case .ready: request(deadline: MonotonicTime.earlier(peer?.deadline, stallDeadline))
        }
    }

    /// When a bus that accepts nothing counts as lost.
    private var stallDeadline: MonotonicTime? {
        guard let limit = peer?.stallLimit, let since = connection?.stalledSince else { return nil }
        return since + limit
    }

    private func request(deadline: MonotonicTime?) -> PollRequest {
        guard let connection else { return PollRequest() }
        return PollRequest(descriptor: connection.descriptor, events: connection.events, deadline: deadline)
    }

    /// Whether the bus has accepted the connection.
    var isReady: Bool { if case .ready = phase { true } else { false } }

    /// Handles timeouts and the socket.
    func service(_ events: Int16, on engine: Engine) {
        switch phase {
        case .closed:
            if let time = retry.time, time <= .now { open(on: engine) }
        case .opening(let limit) where limit <= .now:
            lose(.timedOut("accept the connection"), on: engine)
        case .opening, .ready:
            if events != 0 { connection?.service(events) }
            if let limit = stallDeadline, limit <= .now {
                return lose(.timedOut("accept what was sent to it"), on: engine)
            }
            if let deadline = peer?.deadline, deadline <= .now {
                peer?.deadlineHasPassed(BusLink(observing: self, engine: engine))
            }
        }
    }

    func run(_ commands: [Registry.Command], on engine: Engine) {
        for command in commands {
            switch command {
            case .add(let topic): add(topic, on: engine)
            case .remove(let topic): remove(topic, on: engine)
            case .barrier(let barrier): raise(barrier, on: engine)
            case .perform(let body): body(BusLink(observing: self, engine: engine))
            case .open: if case .closed = phase, retry.time == nil { open(on: engine) }
            }
        }
    }

    private func add(_ topic: Topic, on engine: Engine) {
        switch phase {
        case .ready:
            // In this order: when the bus has the rules, it has passed on to the agent what they are for.
            tellPeer(of: topic, added: true, on: engine)
            sendRules(of: topic, on: engine)
        case .opening where !isReplacement:
            break  // Everything that is registered is sent when the connection is ready.
        case .closed where retry.time == nil:
            open(on: engine)
        default:
            // Those who wait for the bus are served once it is there.
            engine.registry.settle { _ in if !topic.waitsForBus { topic.state = .failed(.disconnected) } }
        }
    }

    private func remove(_ topic: Topic, on engine: Engine) {
        guard case .ready = phase else { return }
        removeRules(of: topic, on: engine)
        tellPeer(of: topic, added: false, on: engine)
    }

    private func raise(_ barrier: Barrier, on engine: Engine) {
        switch phase {
        case .ready:
            // What a relay holds for this program was posted before.
            let isWaiting = peer?.synchronize(BusLink(observing: self, engine: engine)) { link in
                link.observing.ask("GetId", nil, .barrier(barrier), on: link.engine)
            }
            if isWaiting != true { ask("GetId", nil, .barrier(barrier), on: engine) }
        case .opening where !isReplacement:
            earlyBarriers.append(barrier)
        case .closed where retry.time == nil:
            engine.enqueueLast { barrier.complete(.success(())) }
        default:
            barrier.complete(.failure(.disconnected))
        }
    }

    func peerObserver(on engine: Engine) -> Observer? {
        if peerObserver == nil, let peer {
            let client = PeerClient(peer: peer, engine: engine)
            peerObserver = Observer(runner: .client(client), counters: engine.counters) { _ in }
        }
        return peerObserver
    }

    func observer(for listener: any PostListener, on engine: Engine) -> Observer {
        if let listenerObserver { return listenerObserver }
        let client = ListenerClient(listener: listener, engine: engine)
        let observer = Observer(runner: .client(client), counters: engine.counters) { _ in }
        listenerObserver = observer
        keepsSenders = true
        return observer
    }

    /// Calls a method of the bus, and remembers the purpose.
    func ask(_ member: String, _ argument: String?, _ question: Question, on engine: Engine) {
        let serial = connection?.callBus(member, argument) ?? 0
        if serial != 0 {
            questions.begin(serial, to: .bus, for: question)
        } else {
            answer(question, with: BusMessage(kind: .error), on: engine)
        }
    }

    /// Sends a message to which `peer` is to reply, and remembers the purpose.
    func send(
        _ message: OutgoingMessage,
        to peer: BusCalls<Question>.Peer,
        _ question: Question,
        on engine: Engine
    ) {
        let serial = connection?.send(message) ?? 0
        if serial != 0 {
            questions.begin(serial, to: peer, for: question)
        } else {
            answer(question, with: BusMessage(kind: .error), on: engine)
        }
    }

    // MARK: - Connecting and disconnecting

    private func open(on engine: Engine) {
        generation += 1
        do throws(NotifyBusError) {
            let connection = try BusConnection(
                address: bus.resolveAddress(),
                title: bus.title,
                takesDescriptors: peer?.takesDescriptors ?? false
            )
            questions.begin(connection.helloSerial, to: .bus, for: .hello)
            self.connection = connection
            phase = .opening(until: .now + ObservingConnection.openingLimit)
        } catch {
            lose(error, on: engine)
        }
    }

    func becomeReady(on engine: Engine) {
        phase = .ready
        retry.reset()
        lossError = nil
        let identity = connection?.busGUID
        isOnAnotherBus = identity == nil || identity != busIdentity
        wasCutOff = isReplacement && !isOnAnotherBus
        busIdentity = identity
        peer?.linkIsReady(BusLink(observing: self, engine: engine))
        var topics: [Topic] = []
        unrestored = 0
        engine.registry.settle(absence: nil) { table in
            table.forEach { topic in
                topics.append(topic)
                topic.isOwed =
                    switch topic.state {
                    case .lost: true
                    case .adding: (isAwaited || isReplacement) && topic.waitsForBus
                    case .active, .failed: false
                    }
                if topic.isOwed { unrestored += 1 }
            }
        }
        for topic in topics { sendRules(of: topic, on: engine) }
        noteRestored(on: engine)
        let barriers = earlyBarriers
        earlyBarriers = []
        for barrier in barriers { raise(barrier, on: engine) }
    }

    /// Counts the return of the bus, once everything is registered again.
    func noteRestored(on engine: Engine) {
        guard isReplacement || isAwaited, unrestored == 0 else { return }
        if isReplacement { engine.counters.reconnects.increment() }
        (isReplacement, isAwaited) = (false, false)
        if let onConnectionChange { engine.enqueue { onConnectionChange(.reconnected) } }
    }

    func lose(_ error: NotifyBusError, on engine: Engine) {
        let wasReady = isReady
        lossError = error
        let unanswered = questions.purposes
        lifecycle.keep(senders.takeAll())
        forgetConnection(error)
        heldTopics = []
        for case .call(let completion) in unanswered {
            completion(.failure(.lost), BusLink(observing: self, engine: engine))
        }
        peer?.linkIsLost(error, on: BusLink(observing: self, engine: engine))
        reach = RuleReach()
        users = UserDirectory()

        var hasLost = false
        var hasWaiters = false
        engine.registry.settle(absence: wasReady ? .disconnected : error) { topics in
            topics.forEach { topic in
                switch topic.state {
                case .active, .lost:
                    topic.state = .lost
                    hasLost = true
                case .adding where topic.waitsForBus:
                    hasWaiters = true
                case .adding:
                    // Somebody is waiting for it, and is informed.
                    topic.state = .failed(wasReady ? .disconnected : error)
                case .failed:
                    break
                }
            }
        }
        if hasLost || hasWaiters || peer?.keepsConnection == true { retry.schedule() } else { retry.reset() }
        isReplacement = hasLost
        let isNews = hasLost && wasReady || hasWaiters && !hasLost && !isAwaited
        isAwaited = hasWaiters && !hasLost
        if isNews, let onConnectionChange { engine.enqueue { onConnectionChange(.disconnected(error)) } }
    }

    func close() {
        forgetConnection(.closed)
    }

    private func forgetConnection(_ error: NotifyBusError) {
        for barrier in earlyBarriers { barrier.complete(.failure(error)) }
        earlyBarriers = []
        for case .barrier(let barrier) in questions.purposes { barrier.complete(.failure(error)) }
        questions.removeAll()
        connection = nil
        phase = .closed
    }
}
