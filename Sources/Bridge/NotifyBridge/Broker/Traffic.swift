// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The traffic in both directions: stamps outgoing names, and decides which messages become posts. It outlives
/// connections; only the broker's thread uses it.
final class Traffic {
    let origin: Origin
    /// The filters to subscribe to.
    private let filters: [MQTTTopic]

    private let configuration: BridgeConfiguration
    private let map: TopicMap
    private let exchange: Exchange
    private let center: NotifyCenter
    private let diagnostics: Diagnostics
    /// Increases even across restarts, as long as the clock does.
    private var sequence = UInt64(clamping: Clock.timeOfDay / 1_000)
    private var hasWarnedOfCopy = false
    private var confirmations = Confirmations()
    /// Names that an earlier connection may have lost. They are sent first, with the same stamps.
    private var again: [Confirmations.Sent] = []
    /// Names because of which the broker has ended connections.
    private var refusals = Refusals()
    /// Names for which its limit is too small, and which have been logged.
    private var oversized = Refusals()
    /// Filters because of which the broker has ended connections.
    private var refusedFilters: Set<MQTTTopic> = []
    private var suspectFilter: MQTTTopic?
    /// Whether filters are sent one at a time, because the broker has ended the last connection while it had them.
    private(set) var sendsFiltersSingly = false
    private var abilities = BrokerAbilities()
    private var window = StampWindow()
    /// With `catch-up`.
    private var seen: SeenStamps?
    private var limit: RateLimit
    /// Names that arrived faster than the rate allows.
    private var incoming = Exchange.coalescingQueue()
    /// When the first of them can be posted.
    private(set) var wakeTime: Int64?

    init(
        _ configuration: BridgeConfiguration,
        _ origin: Origin,
        _ state: StateFolder,
        _ exchange: Exchange,
        _ center: NotifyCenter,
        _ diagnostics: Diagnostics
    ) {
        self.configuration = configuration
        self.origin = origin
        self.exchange = exchange
        self.center = center
        self.diagnostics = diagnostics
        map = TopicMap(realm: configuration.realm)
        filters = map.filters(for: configuration.imports)
        limit = RateLimit(rate: configuration.rate, now: Clock.monotonic)
        if configuration.catchesUp { seen = SeenStamps(in: state, configuration) }
    }

    // MARK: Out

    /// A message for the broker.
    struct Message {
        let topic: MQTTTopic
        let payload: String

        /// The size of its packet. See section 3.3 of MQTT 5.
        func size(retained: Bool) -> Int {
            packetSize(2 + topic.bytes.count + (retained ? 6 : 1) + payload.utf8.count)
        }
    }

    /// Asked about to learn that the broker has everything before it. No name has this topic.
    let question = MQTTTopic("nb1")

    /// Whether the broker is asked to keep messages.
    var retains: Bool { configuration.catchesUp && abilities.retains }

    /// The next message for the broker; nil if there is none, or so many are unconfirmed that the broker must answer
    /// first.
    func nextMessage() -> Message? {
        while !confirmations.isFull, let sent = next() {
            let stamp = Stamp(origin: origin, sequence: sent.sequence)
            let message = Message(topic: map.topic(of: sent.name), payload: stamp.description)
            if refusals.contains(sent.name) || !fits(message, sent.name) {
                exchange.count { $0.refused += 1 }
                continue
            }
            confirmations.append(sent)
            exchange.count { $0.sent += 1 }
            diagnostics.detail("sent \(sent.name)")
            return message
        }
        return nil
    }

    private func fits(_ message: Message, _ name: NotifyName) -> Bool {
        guard let limit = abilities.maximumPacket else { return true }
        let size = message.size(retained: retains)
        if size <= limit { return true }
        let text = "does not take \(name): it needs a message of \(size) bytes, and \(limit) are the limit"
        if oversized.insert(name) { diagnostics.notice("\(configuration.broker) \(text)") }
        return false
    }

    private func next() -> Confirmations.Sent? {
        while !again.isEmpty {
            let sent = again.removeFirst()
            // If it is queued anyway, it is sent once, later.
            if !exchange.isWaiting(sent.name) { return sent }
        }
        guard let name = exchange.nextExport() else { return nil }
        sequence &+= 1
        return Confirmations.Sent(name: name, sequence: sequence)
    }

    /// Whether to ask the broker now.
    func startsQuestion() -> Bool {
        confirmations.startsBarrier(isLast: again.isEmpty && exchange.hasNoExports)
    }

    /// Whether the broker has everything that was to be sent.
    var isConfirmed: Bool { confirmations.isEmpty && again.isEmpty }

    /// The broker has answered.
    func confirm() {
        confirmations.confirm()
        refusals.acquit()
    }

    /// A connection begins.
    ///
    /// - Returns: why there is no point in it, as a sentence; nil if there is.
    func beginConnection(_ abilities: BrokerAbilities) -> String? {
        self.abilities = abilities
        let broker = configuration.broker
        if configuration.catchesUp, !abilities.retains {
            diagnostics.notice(
                "\(broker) keeps no messages, so 'catch-up' does nothing: what is posted while a machine is away never "
                    + "reaches it"
            )
        }
        guard let limit = abilities.maximumPacket else { return nil }
        let names =
            Array(configuration.exports.names) + configuration.exports.prefixes.compactMap { try? NotifyName($0 + "x") }
        let stamp = Stamp(origin: origin, sequence: sequence).description
        let shortest = names.map { Message(topic: map.topic(of: $0), payload: stamp).size(retained: retains) }.min()
        if let shortest, shortest > limit {
            return "\(broker) takes messages of at most \(limit) bytes, and the shortest name that may leave needs "
                + "\(shortest)."
        }
        let least = filters.map { subscriptionSize([$0]) }.min()
        if shortest == nil, let least, least > limit {
            return "\(broker) takes messages of at most \(limit) bytes, and the shortest subscription needs \(least)."
        }
        return nil
    }

    /// The filters to subscribe to, and why others are not.
    func currentFilters() -> (filters: [MQTTTopic], refused: [(MQTTTopic, String)]) {
        var current: [MQTTTopic] = []
        var refused: [(MQTTTopic, String)] = []
        for filter in filters {
            if refusedFilters.contains(filter) {
                refused.append((filter, "ends the connection"))
            } else if !abilities.hasWildcards, filter.bytes.last == UInt8(ascii: "#") {
                refused.append((filter, "the broker takes no filters with '#'"))
            } else if let limit = abilities.maximumPacket, subscriptionSize([filter]) > limit {
                refused.append((filter, "the broker takes only \(limit) bytes"))
            } else {
                current.append(filter)
            }
        }
        return (current, refused)
    }

    /// How many of the filters fit into one subscription.
    func portion(of filters: ArraySlice<MQTTTopic>) -> Int {
        if sendsFiltersSingly { return 1 }
        let limit = min(abilities.maximumPacket ?? .max, Self.longestSubscription)
        var count = 1
        while count < min(filters.count, Self.mostFilters), subscriptionSize(filters.prefix(count + 1)) <= limit {
            count += 1
        }
        return count
    }

    /// The most filters in one subscription, and their size with all that belongs to them.
    private static let mostFilters = 64
    private static let longestSubscription = 65_536

    /// See section 3.8 of MQTT 5.
    private func subscriptionSize(_ filters: some Sequence<MQTTTopic>) -> Int {
        packetSize(3 + filters.reduce(0) { $0 + $1.bytes.count + 3 })
    }

    /// The connection has ended.
    ///
    /// - Parameters:
    ///   - reason: the broker's, if it may have done so because of what it was sent.
    ///   - filter: the only filter that it had yet to answer.
    ///   - isSubscribing: whether it had any to answer.
    func endConnection(_ reason: String?, subscribing isSubscribing: Bool, to filter: MQTTTopic?) {
        let unconfirmed = confirmations.takeUnconfirmed()
        again = unconfirmed + again
        hasEndedByContent = reason != nil && (isSubscribing || !unconfirmed.isEmpty)
        if let reason, isSubscribing {
            if sendsFiltersSingly, let filter, filter == suspectFilter {
                refusedFilters.insert(filter)
                diagnostics.notice(
                    "\(configuration.broker) does not take the filter \(filter): \(reason); no such name will be heard"
                )
            }
            suspectFilter = filter
            sendsFiltersSingly = true
        } else if let reason, !unconfirmed.isEmpty {
            confirmations.slowDown()
            if let name = refusals.noteEnd(unconfirmed: unconfirmed.map(\.name)) {
                again.removeAll { $0.name == name }
                exchange.count { $0.refused += 1 }
                diagnostics.notice(
                    "\(configuration.broker) does not take \(name): \(reason); it is not sent any more"
                )
            }
        } else {
            refusals.acquit()
        }
        seen?.endConnection()
        save()
    }

    /// All filters are answered.
    func endSubscribing() {
        (sendsFiltersSingly, suspectFilter) = (false, nil)
    }

    /// Whether the broker seems to have ended the last connection because of a name or a filter.
    private(set) var hasEndedByContent = false

    // MARK: In

    /// Takes a message from the broker.
    func receive(_ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, isRetained: Bool) {
        let stamp = Stamp(payload)
        let name = map.name(of: topic)
        let verdict = name.map(configuration.imports.judge) ?? .notListed
        if let name, verdict == .unprintable { return exchange.refuseUnprintable(name, isIncoming: true, diagnostics) }
        guard let name, verdict == .crosses, payload.isEmpty || stamp != nil else {
            exchange.count { $0.refused += 1 }
            return diagnostics.detail("refused a message to \(String(decoding: topic, as: UTF8.self))")
        }
        if let stamp, !isNews(stamp, of: name, isRetained) {
            exchange.count { $0.duplicates += 1 }
            return diagnostics.detail("ignored a duplicate of \(name)")
        }
        if incoming.isEmpty, limit.take(now: Clock.monotonic) { return post(name) }
        switch incoming.enqueue(name) {
        case .queued: exchange.count { $0.waiting += 1 }
        case .coalesced: exchange.count { $0.merged += 1 }
        case .full: exchange.count { $0.lost += 1 }
        }
        if wakeTime == nil { wakeTime = Clock.monotonic + limit.wait }
    }

    /// Whether a stamp stands for a post that was not heard yet.
    private func isNews(_ stamp: Stamp, of name: NotifyName, _ isRetained: Bool) -> Bool {
        if stamp.origin == origin {
            warnOfCopy(stamp)
            return false
        }
        guard window.insert(stamp, of: name) else { return false }
        guard seen != nil else { return true }
        let isAnother = seen?.note(stamp, of: name) ?? true
        // Retained messages are not news to a bridge that connects for the first time.
        return isRetained ? isAnother && seen?.knows(name) ?? true : true
    }

    /// A number that this bridge has yet to reach comes from another bridge with the same id, or is forged.
    private func warnOfCopy(_ stamp: Stamp) {
        guard stamp.sequence > sequence, !hasWarnedOfCopy else { return }
        hasWarnedOfCopy = true
        diagnostics.notice(
            "another bridge has the id of this one, \(origin), and hears nothing from it: delete 'bridge-id' on one machine"
        )
    }

    /// Posts as many queued names as the rate allows.
    func postWhatWaits() {
        guard let time = wakeTime, time <= Clock.monotonic else { return }
        wakeTime = nil
        while !incoming.isEmpty {
            guard limit.take(now: Clock.monotonic) else {
                wakeTime = Clock.monotonic + limit.wait
                return
            }
            guard let name = incoming.popFirst() else { return }
            exchange.count { $0.waiting -= 1 }
            post(name)
        }
    }

    private func post(_ name: NotifyName) {
        do {
            try center.postOnceConnected(name)
            exchange.count { $0.received += 1 }
            diagnostics.detail("received \(name)")
        } catch {
            exchange.count { $0.lost += 1 }
            diagnostics.notice("\(name) could not be posted: \(error.description)")
        }
    }

    /// The broker has told what it keeps: a bridge that starts again knows what it has missed since.
    func endReplay() {
        seen?.complete()
        save()
    }

    /// Saves what the bridge needs after a restart.
    func save() {
        do {
            try seen?.save()
        } catch {
            diagnostics.notice(error.description)
        }
    }
}

/// The size of an MQTT packet, with its first byte and its length.
private func packetSize(_ rest: Int) -> Int {
    var (size, length) = (2, rest >> 7)
    while length > 0 { (size, length) = (size + 1, length >> 7) }
    return size + rest
}
