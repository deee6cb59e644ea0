// SPDX-License-Identifier: Apache-2.0

/// Follows what a receiver observes, on the thread that reads: the observer's half of the lifecycle protocol.
protocol ReceiverDelegate: AnyObject {
    /// What is observed over the connection has changed.
    func namesHaveChanged(names: [String], prefixes: [String], added: Bool)
    /// The bus has replied about one of the rules that are sent again.
    func ruleIsAnswered()
    /// Waits until posts that were made so far have come, where more than the bus stands between.
    ///
    /// - Returns: false if nothing does; then `completion` is not called.
    func synchronize(then completion: @escaping () -> Void) -> Bool
}

/// Hears names on a connection: reads it, determines who observes what arrives, keeps the match rules on the bus, and makes
/// every registration again when the bus comes back.
///
/// A center has one, and so have others that hear names; it belongs to the thread that drives the connection.
///
/// A run-time check for exclusive access takes some 60 instructions. The compiler omits it if it sees that each access
/// to a variable is instantaneous. So everything on the path of a delivery is a plain value or a reference to an
/// object, not a struct that mutates itself: `isUndisturbed` summarizes those.
package final class Receiver: BusHearer {
    package let link: BusLink
    private let onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange, _ isReturn: Bool) -> Void)?
    /// Told of each change at once, on the thread that reads.
    var connectionState: ConnectionChanges?
    /// Notified of each post that observers hear and of its sender; nil if it is not wanted.
    let onPost: (@Sendable (NotifyName, UnsafePointer<CChar>) -> Void)?
    unowned var delegate: (any ReceiverDelegate)?
    /// The center whose thread runs callbacks; nil if an event loop drives this. It owns this.
    unowned var callbacks: (any CallbackThread)?
    let registry = Registry()
    let counters = Counters()
    /// By which a center recognizes its own posts.
    let ownName = OwnName()
    /// Raised once the bus has accepted the connection.
    private var earlyBarriers: [Barrier] = []
    /// Whether this connection replaces one that was lost.
    private var isReplacement = false
    /// Whether an observer is waiting for a bus that was not found, and has been informed.
    private var isAwaited = false
    /// Whether the bus had accepted the connection that is lost, and the next one has yet to succeed or to fail: perhaps it
    /// has ended only because the agent had parked the program. Topics that are being registered are registered on the
    /// next one.
    private var isReturning = false
    /// So often, at most: a bus may end each connection because of what is registered.
    private static let maximumLosses = 4
    /// Counts the sets of rules: one for each connection, and one for each opening of the gate. A topic remembers the
    /// set that its rules belong to.
    var generation = 1
    var reach = RuleReach()
    /// How many topics have yet to be registered again on a replacement connection.
    var unrestored = 0
    var senders = SenderDirectory() { didSet { noteDisturbance() } }
    var names = NameCache()
    let posts = PostCache()
    /// Whether others are heard by a relay, and not by rules on the bus.
    var hearsByRelay = false
    /// Whether a relay is being looked for, or asked to hear for this program: until then no rule on the bus confirms anything.
    var awaitsRelay = false
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

    /// - Parameters:
    ///   - link: belongs to this from now on.
    ///   - onConnectionChange: called with each change of the connection; also with whether it is one that observers must
    ///     know: they may miss posts, or everything is registered again.
    init(
        _ link: BusLink,
        onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange, _ isReturn: Bool) -> Void)?,
        onPost: (@Sendable (NotifyName, UnsafePointer<CChar>) -> Void)? = nil
    ) {
        self.link = link
        self.onConnectionChange = onConnectionChange
        self.onPost = onPost
        link.hearer = self
    }

    /// For listeners, on an event loop.
    package convenience init(_ link: BusLink) { self.init(link, onConnectionChange: nil) }

    deinit { link.hearer = nil }

    private func noteDisturbance() {
        isUndisturbed =
            lifecycle.isOpen && !lifecycle.hasReplay && !senders.isHolding && !senders.hasVerified && relayed.isEmpty
    }

    /// Whether the connection replaces one that the same bus cut off, along with posts that were not heard.
    var wasCutOff: Bool { isReplacement && !link.isOnAnotherBus }

    /// Whether posts have come whose sender is still being determined. They are passed on once the bus has replied, out
    /// of order.
    package var isHoldingPostsBack: Bool { senders.isHolding }

    /// Whether everything that has been read has been passed on, and everything that was sent is written.
    package var isAtRest: Bool { !senders.isHolding && !senders.hasVerified && link.isAtRest }

    // MARK: - Commands

    func run(_ commands: [Registry.Command]) {
        for command in commands {
            switch command {
            case .add(let topic): add(topic)
            case .remove(let topic): remove(topic)
            case .barrier(let barrier): raise(barrier)
            case .perform(let body): body(link)
            case .open: link.open()
            }
        }
    }

    private func add(_ topic: Topic) {
        if let process = link.bus.process { return add(topic, to: process) }
        switch link.phase {
        case .ready:
            // In this order: when the bus has the rules, it has passed on to the agent what they are for. Together, so that
            // it has them when it gets the agent's next call.
            link.gathering {
                report(topic, added: true)
                sendRules(of: topic)
            }
        case .opening where !isReplacement || isReturning:
            break  // Everything that is registered is sent when the connection is ready.
        case .closed where !link.isReconnecting:
            link.open()
        case .closed where isReturning: break
        default:
            // Callers that wait for the bus are served once it is there.
            registry.settle { _ in if !topic.waitsForBus { topic.state = .failed(.disconnected) } }
        }
    }

    private func add(_ topic: Topic, to process: ProcessBus) {
        let needsNoBus = if case .name(let name) = topic.key { name.staysInProcess } else { false }
        if process.isConnected || needsNoBus {
            registry.settle { _ in topic.state = .active }
        } else if topic.waitsForBus {
            registry.settle(absence: .disconnected) { _ in }
            // It may have come back just before.
            if process.isConnected { registry.settleWaiting() }
        } else {
            registry.settle { _ in topic.state = .failed(.disconnected) }
        }
    }

    private func remove(_ topic: Topic) {
        guard case .ready = link.phase else { return }
        removeRules(of: topic)
        // Who has requested it with others waits for those alone: wide rules, if they come next, are not about this one.
        if case .adding = topic.state { registry.settle { _ in topic.state = .active } }
        report(topic, added: false)
    }

    private func report(_ topic: Topic, added: Bool) {
        switch topic.key {
        case .name(let name): delegate?.namesHaveChanged(names: [name.string], prefixes: [], added: added)
        case .prefix(let prefix): delegate?.namesHaveChanged(names: [], prefixes: [prefix.string], added: added)
        }
    }

    private func raise(_ barrier: Barrier) {
        if link.bus.process?.isConnected == false { return barrier.complete(.failure(.disconnected)) }
        switch link.phase {
        case .ready:
            // Posts that a relay holds for this program precede the barrier.
            let isWaiting = delegate?.synchronize { [self] in ask(for: barrier) }
            if isWaiting != true { ask(for: barrier) }
        case .opening where !isReplacement:
            earlyBarriers.append(barrier)
        case .closed where !link.isReconnecting:
            completeLast(barrier)
        default:
            barrier.complete(.failure(.disconnected))
        }
    }

    private func ask(for barrier: Barrier) {
        link.callBus("GetId", []) { [self] answer in
            if answer.isOfLostConnection {
                barrier.complete(.failure(link.lossError ?? .disconnected))
            } else {
                completeLast(barrier)
            }
        }
    }

    /// Completes a barrier after the callbacks of observers. Without a center there are none.
    private func completeLast(_ barrier: Barrier) {
        guard let callbacks else { return barrier.complete(.success(())) }
        callbacks.enqueueLast { barrier.complete(.success(())) }
    }

    // MARK: - What has arrived

    /// Processes what has been read, up to the next post that has observers.
    ///
    /// - Parameter end: when an event loop wants its turn back; nil if a center's threads drive the connection.
    func nextArrival(until end: MonotonicTime? = nil) -> Arrival? {
        while true {
            guard let connection = link.connection else { return nil }
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
            if let end, end <= .now { return nil }
            guard let message = connection.next() else { return nil }
            switch message.kind {
            case .signal: if let arrival = arrival(from: message) { return arrival }
            case .invalid: counters.noteRejected()
            case .reply, .error, .call, .longCall, .disconnected: break
            }
            link.handle(message)
        }
    }

    /// A post equal to one that was read recently, if it has observers.
    private func arrival(of post: PostCache.Post) -> Arrival? {
        let audience = registry.state.withLock { $0.topics.audience(of: post.name) }
        if audience.isEmpty { return nil }
        let arrival = Arrival(name: post.name, audience: audience)
        if !audience.mindsSender, onPost == nil { return arrival }
        return post.sender.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map { accept(arrival, from: $0) } ?? arrival
        }
    }

    // MARK: - Losing the connection, and having it back

    func linkIsReady() {
        isReturning = false
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
        if isReplacement || isAwaited { noteRestored() } else { report(.connected, isReturn: false) }
        let barriers = earlyBarriers
        earlyBarriers = []
        for barrier in barriers { raise(barrier) }
    }

    /// Counts the return of the bus, once everything is registered again.
    func noteRestored() {
        guard isReplacement || isAwaited, unrestored == 0 else { return }
        if isReplacement { counters.reconnects.increment() }
        (isReplacement, isAwaited) = (false, false)
        report(.connected, isReturn: true)
    }

    /// - Parameter isOver: whether the connection is not wanted any more.
    private func report(_ change: NotifyCenter.ConnectionChange, isReturn: Bool, isOver: Bool = false) {
        guard let onConnectionChange else { return }
        connectionState?.note(isOver ? nil : change)
        guard let callbacks else { return onConnectionChange(change, isReturn) }
        callbacks.enqueue { onConnectionChange(change, isReturn) }
    }

    func linkIsLost() {
        lifecycle.keep(senders.takeAll())
        failEarlyBarriers()
        heldTopics = []
        generation += 1
    }

    private func failEarlyBarriers() {
        for barrier in earlyBarriers { barrier.complete(.failure(link.lossError ?? .disconnected)) }
        earlyBarriers = []
    }

    func linkIsGone(_ error: NotifyBusError, wasReady: Bool, isNeeded: Bool) -> Bool {
        reach = RuleReach()
        let wasReturning = isReturning
        var hasLost = false
        var hasWaiters = false
        var hasNew = false
        registry.settle(absence: wasReady ? .disconnected : error) { topics in
            topics.forEach { topic in
                switch topic.state {
                case .active, .lost:
                    topic.state = .lost
                    hasLost = true
                case .adding where topic.waitsForBus:
                    hasWaiters = true
                case .adding where wasReady && topic.losses < Receiver.maximumLosses:
                    topic.losses += 1
                    hasNew = true
                case .adding:
                    // A thread is waiting for it, and is informed.
                    topic.state = .failed(wasReady || wasReturning ? .disconnected : error)
                case .failed:
                    break
                }
            }
        }
        let isWanted = hasLost || hasWaiters || hasNew || isNeeded
        isReturning = isWanted && wasReady
        isReplacement = hasLost
        let isNews = hasLost && wasReady || hasWaiters && !hasLost && !isAwaited
        isAwaited = hasWaiters && !hasLost
        if isNews || wasReady { report(.disconnected(error), isReturn: isNews, isOver: !isWanted) }
        return isWanted
    }

    /// Closes the connection for good. All pending requests fail.
    ///
    /// - Parameter commands: what has yet to be carried out.
    func close(leaving commands: [Registry.Command]) {
        link.close()
        failEarlyBarriers()
        for command in commands {
            switch command {
            case .barrier(let barrier): barrier.complete(.failure(.closed))
            case .perform(let body): body(link)
            case .add, .remove, .open: break
            }
        }
    }
}

// On an event loop.
extension Receiver {
    /// What to sleep for.
    package var pollRequest: PollRequest { link.pollRequest }

    /// Reads what has come, and handles it for a while. The messages that this sends are written together at the end.
    package func proceed(_ events: Int16) {
        link.proceed(events) { end in
            while nextArrival(until: end) != nil { if end <= .now { return true } }
            return end <= .now
        }
    }

    /// Empties the caches of what was read. Of little size themselves, they lie among what was freed since, and keep the
    /// allocator from returning it.
    package func emptyCaches() {
        names = NameCache()
        posts.removeAll()
    }
}
