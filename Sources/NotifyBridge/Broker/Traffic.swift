// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The traffic in both directions: stamps outgoing names, and decides which messages become posts. It outlives
/// connections; only the broker's thread uses it.
final class Traffic {
    let origin: Origin
    /// The filters to subscribe to.
    let filters: [MQTTTopic]

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
    }

    /// Asked about to learn that the broker has everything before it. No name has this topic.
    let question = MQTTTopic("nb1")

    /// The next message for the broker; nil if there is none, or so many are unconfirmed that the broker must answer
    /// first.
    func nextMessage() -> Message? {
        guard !confirmations.isFull, let sent = next() else { return nil }
        confirmations.append(sent)
        let stamp = Stamp(origin: origin, sequence: sent.sequence)
        exchange.count { $0.sent += 1 }
        diagnostics.detail("sent \(sent.name)")
        return Message(topic: map.topic(of: sent.name), payload: stamp.description)
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
    }

    /// The connection has ended.
    func endConnection() {
        again = confirmations.takeUnconfirmed() + again
        seen?.endConnection()
        save()
    }

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
            try center.post(name)
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
