// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connection to a bus that reads, for observers and for a peer: it is opened when somebody needs it, makes every
/// registration again when the bus comes back, determines who observes what arrives, and passes calls and signals to the
/// peer.
///
/// It belongs to one thread at a time, which drives it: the leader of a center, or the event loop of the agent.
///
/// A run-time check for exclusive access takes some 60 instructions. The compiler omits it if it sees that each access
/// to a variable is instantaneous. So everything on the path of a delivery is a plain value or a reference to an
/// object, not a struct that mutates itself: `isUndisturbed` summarizes those.
package final class BusLink {
    private enum Phase { case closed, opening(until: MonotonicTime), ready }

    /// The purpose of a call to the bus.
    enum Question {
        case hello
        case rule(Topic, generation: Int)
        case wideRule(generation: Int)
        case barrier(Barrier)
        case call((BusAnswer) -> Void)
    }

    /// How long the bus may take to answer Hello, in milliseconds.
    private static let openingLimit: Int64 = 10_000
    /// How long whoever is called may take to answer, in milliseconds, as long as libdbus waits.
    package static let usualAnswerLimit: Int64 = 25_000

    let bus: NotifyCenter.Bus
    private let onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)?
    /// Notified of each post that observers hear and of its sender; nil if nobody is interested.
    let onPost: (@Sendable (NotifyName, UnsafePointer<CChar>) -> Void)?
    /// Who is called for whatever is not a post. Set before the connection is opened; `close` lets go of it.
    package var peer: (any BusPeer)?
    let registry = Registry()
    let counters = Counters()
    /// By which a center recognizes its own posts.
    let ownName = OwnName()
    /// The center whose threads drive this; nil if an event loop does. The engine owns the connection, and its threads,
    /// which alone use this, own the engine.
    unowned var engine: Engine?
    private var phase = Phase.closed
    private var retry = BackOff()
    var questions = BusCalls<Question>()
    /// How long whoever is called may take to answer, in milliseconds, unless the call says otherwise; nil means forever.
    package let answerLimit: Int64?
    /// Raised once the bus has accepted the connection.
    private var earlyBarriers: [Barrier] = []
    /// Whether this connection replaces one that was lost.
    private var isReplacement = false
    /// Whether somebody is waiting for a bus that was not found, and has been informed.
    private var isAwaited = false
    /// The bus that the connection is or was last on. See the D-Bus specification, "Server Addresses", `guid`.
    private var busIdentity: String?
    /// Whether this connection replaces one that the same bus cut off, along with posts that were not heard.
    package private(set) var wasCutOff = false
    /// Whether the last connection, if any, was to another bus: the bus was restarted.
    package private(set) var isOnAnotherBus = false
    /// Whether the bus had accepted the connection that is lost, and the next one has yet to succeed or to fail: perhaps it
    /// has ended only because the agent had parked the program. What is being registered is registered on the next one.
    private var isReturning = false
    /// So often, at most: a bus may end each connection because of what is registered.
    private static let maximumLosses = 4
    /// Why there is no connection.
    private(set) var lossError: NotifyBusError?

    private(set) var connection: BusConnection?
    package var uniqueName = ""
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
    /// Posts that the relay has passed on.
    var relayed = Fifo<(name: NotifyName, sender: String)>() { didSet { noteDisturbance() } }
    /// Whether posts may pass, and who decides on that.
    var lifecycle = ObserverLifecycle() { didSet { noteDisturbance() } }
    /// Whether the gate is open, and nothing is pending that precedes what is read.
    private(set) var isUndisturbed = true
    /// Topics that would be live, if only the agent had reported in which state this connection starts, or that it holds
    /// them for a suspended program.
    var heldTopics: [Topic] = []
    /// Each represents one of those that have subscribed.
    var listeners: [Observer] = []
    /// When the leader began to work on what had arrived.
    package var batchStart = MonotonicTime(nanoseconds: 0)
    /// When an event loop wants its turn back; nil if a center's threads drive the connection.
    var sliceEnd: MonotonicTime?
    /// How much had been read on this connection when the peer was told that it was much.
    private var readCountNoted: UInt64 = 0
    /// Whether messages have been read that are not handled yet, because the time was up.
    var isBehind = false
    /// Whether there was something to read when it was this connection's turn last.
    package private(set) var isBusy = false
    /// How long an event loop has spent on what was read, in nanoseconds.
    package private(set) var readingTime: Int64 = 0

    /// A connection for a peer alone.
    package convenience init(bus: NotifyCenter.Bus, answerLimit: Int64 = BusLink.usualAnswerLimit) {
        self.init(bus: bus, answerLimit: answerLimit, onConnectionChange: nil)
    }

    init(
        bus: NotifyCenter.Bus,
        answerLimit: Int64? = nil,
        onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)?,
        onPost: (@Sendable (NotifyName, UnsafePointer<CChar>) -> Void)? = nil
    ) {
        self.bus = bus
        self.answerLimit = answerLimit
        self.onConnectionChange = onConnectionChange
        self.onPost = onPost
    }

    private func noteDisturbance() {
        isUndisturbed =
            lifecycle.isOpen && !lifecycle.hasReplay && !senders.isHolding && !senders.hasVerified && relayed.isEmpty
    }

    /// Whether it is lost, and will be made again.
    var isReconnecting: Bool { if case .closed = phase { retry.time != nil } else { false } }

    /// What `service` is to be called for.
    var serviceRequest: PollRequest {
        switch phase {
        case .closed: PollRequest(deadline: retry.time)
        case .opening(let limit): request(deadline: limit)
        case .ready:
            request(deadline: .earlier(questions.deadline, .earlier(peer?.deadline, stallDeadline)))
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

    /// Whether posts have come whose sender is still being determined. They are passed on once the bus has replied, out
    /// of order.
    package var isHoldingPostsBack: Bool { senders.isHolding }

    /// Whether the bus has accepted the connection.
    var isReady: Bool { if case .ready = phase { true } else { false } }

    /// Handles timeouts and the socket.
    func service(_ events: Int16) {
        switch phase {
        case .closed:
            if let time = retry.time, time <= .now { connect() }
        case .opening(let limit) where limit <= .now:
            lose(.timedOut("accept the connection"))
        case .opening, .ready:
            if events != 0 { connection?.report(events) }
            // What is queued is written first if the bus reads again.
            if let limit = stallDeadline, limit <= .now, events & Int16(POLLOUT) == 0 {
                return lose(.timedOut("accept what was sent to it"))
            }
            endLateQuestions()
            if let deadline = peer?.deadline, deadline <= .now {
                peer?.deadlineHasPassed()
            }
        }
    }

    func run(_ commands: [Registry.Command]) {
        for command in commands {
            switch command {
            case .add(let topic): add(topic)
            case .remove(let topic): remove(topic)
            case .barrier(let barrier): raise(barrier)
            case .perform(let body): body(self)
            case .open: if case .closed = phase, retry.time == nil { connect() }
            }
        }
    }

    private func add(_ topic: Topic) {
        switch phase {
        case .ready:
            // In this order: when the bus has the rules, it has passed on to the agent what they are for. Together, so that
            // it has them when it gets the agent's next call.
            gathering {
                tellPeer(of: topic, added: true)
                sendRules(of: topic)
            }
        case .opening where !isReplacement || isReturning:
            break  // Everything that is registered is sent when the connection is ready.
        case .closed where retry.time == nil:
            connect()
        case .closed where isReturning: break
        default:
            // Those who wait for the bus are served once it is there.
            registry.settle { _ in if !topic.waitsForBus { topic.state = .failed(.disconnected) } }
        }
    }

    private func remove(_ topic: Topic) {
        guard case .ready = phase else { return }
        removeRules(of: topic)
        tellPeer(of: topic, added: false)
    }

    private func raise(_ barrier: Barrier) {
        switch phase {
        case .ready:
            // What a relay holds for this program was posted before.
            let isWaiting = peer?.synchronize { [self] in ask("GetId", nil, .barrier(barrier)) }
            if isWaiting != true { ask("GetId", nil, .barrier(barrier)) }
        case .opening where !isReplacement:
            earlyBarriers.append(barrier)
        case .closed where retry.time == nil:
            enqueueLast { barrier.complete(.success(())) }
        default:
            barrier.complete(.failure(.disconnected))
        }
    }

    // MARK: - What has arrived

    /// Processes what has been read, up to the next post that has observers.
    func nextArrival() -> Arrival? {
        while true {
            guard let connection else { return nil }
            if isUndisturbed {
                if !posts.isEmpty, let message = connection.peek(), let post = posts.find(message) {
                    connection.passOver(message)
                    if let arrival = arrival(of: post) { return arrival }
                    continue
                }
            } else if let arrival = nextReplayed() ?? nextRelayed()
                ?? nextVerified()
            {
                return arrival
            }
            if let sliceEnd, sliceEnd <= .now {
                isBehind = true
                return nil
            }
            guard let message = connection.next() else { return nil }
            switch message.kind {
            case .signal:
                if let arrival = arrival(from: message) { return arrival }
                if !message.looksLikePost { passOnSignal(message) }
            case .reply, .error:
                if let question = questions.end(with: message) { answer(question, with: message) }
            case .call:
                passOnCall(message)
            case .longCall:
                refuse(message)
            case .invalid:
                counters.ignored.increment()
            case .disconnected:
                lose(BusConnection.lossError(bus.title))
            }
        }
    }

    private func tellPeer(of topic: Topic, added: Bool) {
        switch topic.key {
        case .name(let name): peer?.namesHaveChanged(names: [name.string], prefixes: [], added: added)
        case .prefix(let prefix): peer?.namesHaveChanged(names: [], prefixes: [prefix.string], added: added)
        }
    }

    private func passOnSignal(_ message: BusMessage) {
        guard let peer, let sender = message.sender, let path = message.path,
            let interface = message.interface, let member = message.member, let arguments = message.arguments()
        else { return }
        let signal = BusSignal(
            sender: String(cString: sender),
            path: String(cString: path),
            interface: String(cString: interface),
            member: String(cString: member),
            arguments: arguments
        )
        peer.handle(signal)
    }

    private func passOnCall(_ message: BusMessage) {
        if let peer, let start = message.sender {
            let sender = String(cString: start)
            if peer.refuses(BusCall.Head(sender: sender, message: message)) { return }
            let isForLater = peer.readsLargeCallsLater && message.bytes.count > BusCall.largeSize
            guard let call = BusCall(message, from: sender, readsArguments: !isForLater) else { return refuse(message) }
            if peer.handle(call) { return }
            call.arguments.closeDescriptors()
        }
        refuse(message)
    }

    // MARK: - Connecting and disconnecting

    private func connect() {
        generation += 1
        do throws(NotifyBusError) {
            let connection = try BusConnection(
                address: bus.resolveAddress(),
                title: bus.title,
                takesDescriptors: peer?.takesDescriptors ?? false
            )
            connection.refusesCall = { [unowned self] message in
                guard let peer, let sender = message.sender else { return false }
                return peer.refuses(BusCall.Head(sender: String(cString: sender), message: message))
            }
            questions.begin(connection.helloSerial, to: .bus, for: .hello)
            self.connection = connection
            readCountNoted = 0
            phase = .opening(until: .now + BusLink.openingLimit)
        } catch {
            lose(error)
        }
    }

    func becomeReady() {
        phase = .ready
        retry.reset()
        isReturning = false
        lossError = nil
        let identity = connection?.busGUID
        isOnAnotherBus = identity == nil || identity != busIdentity
        wasCutOff = isReplacement && !isOnAnotherBus
        busIdentity = identity
        peer?.linkIsReady(self)
        var topics: [Topic] = []
        unrestored = 0
        registry.settle(absence: nil) { table in
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
        for topic in topics { sendRules(of: topic) }
        noteRestored()
        let barriers = earlyBarriers
        earlyBarriers = []
        for barrier in barriers { raise(barrier) }
    }

    /// Counts the return of the bus, once everything is registered again.
    func noteRestored() {
        guard isReplacement || isAwaited, unrestored == 0 else { return }
        if isReplacement { counters.reconnects.increment() }
        (isReplacement, isAwaited) = (false, false)
        if let onConnectionChange { enqueue { onConnectionChange(.reconnected) } }
    }

    func lose(_ error: NotifyBusError) {
        let wasReady = isReady
        lossError = error
        let unanswered = questions.purposes
        lifecycle.keep(senders.takeAll())
        forgetConnection(error)
        heldTopics = []
        for case .call(let completion) in unanswered {
            completion(.failure(.lost))
        }
        peer?.linkIsLost(error)
        reach = RuleReach()
        users = UserDirectory()

        let wasReturning = isReturning
        var hasLost = false
        var hasWaiters = false
        isReturning = false
        registry.settle(absence: wasReady ? .disconnected : error) { topics in
            topics.forEach { topic in
                switch topic.state {
                case .active, .lost:
                    topic.state = .lost
                    hasLost = true
                case .adding where topic.waitsForBus:
                    hasWaiters = true
                case .adding where wasReady && topic.losses < BusLink.maximumLosses:
                    topic.losses += 1
                    isReturning = true
                case .adding:
                    // Somebody is waiting for it, and is informed.
                    topic.state = .failed(wasReady || wasReturning ? .disconnected : error)
                case .failed:
                    break
                }
            }
        }
        if hasLost || hasWaiters || isReturning || peer?.keepsConnection == true {
            isReturning = wasReady
            retry.schedule()
        } else {
            retry.reset()
        }
        isReplacement = hasLost
        let isNews = hasLost && wasReady || hasWaiters && !hasLost && !isAwaited
        isAwaited = hasWaiters && !hasLost
        if isNews, let onConnectionChange { enqueue { onConnectionChange(.disconnected(error)) } }
    }

    /// Empties the caches of what was read. Of little size themselves, they lie among what was freed since, and keep the
    /// allocator from returning it.
    package func emptyCaches() {
        names = NameCache()
        posts.removeAll()
    }

    func close() {
        forgetConnection(.closed)
        retry.reset()
    }

    /// Closes the connection for good. Nobody who has asked for something keeps waiting for it.
    ///
    /// - Parameter commands: what has yet to be carried out.
    func close(leaving commands: [Registry.Command]) {
        lossError = .closed
        let unanswered = questions.purposes
        close()
        for case .call(let completion) in unanswered { completion(.failure(.lost)) }
        peer?.linkIsClosed()
        for command in commands {
            switch command {
            case .barrier(let barrier): barrier.complete(.failure(.closed))
            case .perform(let body): body(self)
            case .add, .remove, .open: break
            }
        }
    }

    /// Schedules a call after the callbacks of observers. Without a center there are none.
    func enqueue(_ call: @escaping @Sendable () -> Void) {
        if let engine { engine.enqueue(call) } else { call() }
    }

    func enqueueLast(_ call: @escaping @Sendable () -> Void) {
        if let engine { engine.enqueueLast(call) } else { call() }
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

// A connection that an event loop drives instead of a center's threads. It has no observers but listeners.
extension BusLink {
    /// How long what has come is handled before others get their turn, in milliseconds.
    private static let slice: Int64 = 2

    /// How many bytes are much: a quarter of what a default system bus keeps for a connection, beyond which it leaves out
    /// signals. So whenever one has been left out, this much is yet to be read.
    private static let much: UInt64 = 32 << 20

    /// Connects. The peer learns what becomes of it, possibly before this returns.
    package func open() { run([.open]) }

    /// What to sleep for.
    package var pollRequest: PollRequest {
        var request = serviceRequest
        // What has been read and not handled poll(2) can't know.
        if isBehind { (request.events, request.deadline) = (0, MonotonicTime(nanoseconds: 0)) }
        return request
    }

    /// Reads what has come, and handles it for a while. What that sends is written together at the end.
    package func proceed(_ events: Int16) {
        let connection = connection
        connection?.collects = true
        handleWhatHasCome(events)
        connection?.collects = false
    }

    private func handleWhatHasCome(_ events: Int16) {
        batchStart = .now
        isBusy = isBehind || events & Int16(POLLIN) != 0
        service(events)
        isBehind = false
        // From here on, so that something is read each time, whatever the peer has done just now.
        let start = MonotonicTime.now
        let end = start + BusLink.slice
        sliceEnd = end
        defer {
            sliceEnd = nil
            readingTime += MonotonicTime.now.nanoseconds - start.nanoseconds
            noteReading()
        }
        while nextArrival() != nil {
            if .now >= end {
                isBehind = true
                return
            }
        }
    }

    private func noteReading() {
        guard let count = connection?.readCount, count &- readCountNoted >= BusLink.much else { return }
        readCountNoted = count
        peer?.hasReadMuch()
    }

    /// Closes the connection, and lets go of the peer.
    package func end() {
        close()
        peer = nil
    }
}
