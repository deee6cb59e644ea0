// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import CommandSupport
import Glibc
import NotifyCore

/// One connection to the broker, from start to end. Only the broker's thread uses it.
final class BrokerSession {
    /// How a connection ended.
    enum End {
        /// As requested.
        case asTold
        /// The broker refuses this bridge, with the reason, and would do so again.
        case refused(String)
        /// With the reason.
        case lost(String, Cause)
    }

    /// Why a connection was lost.
    enum Cause {
        /// The broker has ended it, possibly because of what it was sent.
        case broker
        /// Another client connected with the same id.
        case takeover
        case other
    }

    private enum Stage: Equatable {
        /// The broker has not answered yet.
        case connecting
        /// The broker has not answered each subscription yet.
        case subscribing
        case online
    }

    /// How long the broker may take to answer, in nanoseconds.
    private static let timeLimit: Int64 = 30_000_000_000
    /// How long the broker may take at exit to accept everything, in nanoseconds.
    private static let farewell: Int64 = 3_000_000_000
    /// The most names sent before the socket is read.
    private static let portion = 64

    private let client: BrokerClient
    private let configuration: BridgeConfiguration
    private let exchange: Exchange
    private let traffic: Traffic
    private let diagnostics: Diagnostics
    private var stage = Stage.connecting
    private var end: End?
    /// When the broker must have answered; nil once everything is answered.
    private var deadline: Int64?
    /// Until when it may accept what is left, once the bridge is asked to exit.
    private var farewellEnd: Int64?
    /// When to save what has changed.
    private var saveTime: Int64?
    /// The filters that have not been requested yet, and those that have been, by the number of their subscription.
    private var unrequested: ArraySlice<MQTTTopic> = []
    private var subscriptions: [Int: ArraySlice<MQTTTopic>] = [:]
    private var subscriptionCount = 0
    private var verdicts: [String] = []
    /// Whether the broker has sent its retained messages.
    private var hasReplayed = false
    /// Since when names have been crossing; nil if they never did.
    private(set) var onlineSince: Int64?
    /// Whether the broker has confirmed names.
    private(set) var hasProgressed = false

    init(
        _ configuration: BridgeConfiguration,
        _ exchange: Exchange,
        _ traffic: Traffic,
        _ diagnostics: Diagnostics
    ) throws(ConfigurationError) {
        self.configuration = configuration
        self.exchange = exchange
        self.traffic = traffic
        self.diagnostics = diagnostics
        client = try BrokerClient(BrokerLogin(id: BrokerSession.newID(), configuration))
    }

    /// A client ID for one connection. No other client can learn it from what the bridge publishes, or use it to take
    /// the bridge's place on the broker: a broker ends the connection of a client when another one connects with its
    /// ID.
    private static func newID() -> String {
        // From getrandom(2).
        var generator = SystemRandomNumberGenerator()
        return "nb1-\(Origin(high: generator.next(), low: generator.next()))"
    }

    /// Runs the connection, and returns when it has ended.
    func run() -> End {
        client.onConnect = { [unowned self] in connected($0, $1) }
        client.onEnd = { [unowned self] in ended($0) }
        client.onSubscribe = { [unowned self] in subscribed($0, $1) }
        client.onAnswer = { [unowned self] in answered() }
        client.onMessage = { [unowned self] in traffic.receive($0, $1, isRetained: $2) }
        deadline = Clock.monotonic + Self.timeLimit
        setSaveTime()
        while true {
            if let end = turn() {
                if stage == .online { exchange.goOffline() }
                noteEnd(end)
                return end
            }
        }
    }

    private func noteEnd(_ end: End) {
        let reason: String? = if case .lost(let text, .broker) = end { text } else { nil }
        let asked = subscriptions.values.flatMap { $0 }
        traffic.endConnection(
            reason,
            subscribing: stage == .subscribing,
            to: asked.count == 1 ? asked.first : nil
        )
    }

    /// Waits for work, and does it.
    private func turn() -> End? {
        var sources = [
            pollfd(fd: client.descriptor, events: client.events, revents: 0),
            pollfd(fd: exchange.brokerWakeUp.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        waitForEvents(&sources, until: [deadline, saveTime, traffic.wakeTime, farewellEnd].compactMap { $0 }.min())
        if sources[1].revents != 0 { exchange.brokerWakeUp.clear() }
        if sources[0].revents != 0 { client.proceed() }
        if end == nil, let time = saveTime, time <= Clock.monotonic {
            traffic.save()
            setSaveTime()
        }
        traffic.postWhatWaits()
        if end == nil, let deadline, deadline <= Clock.monotonic {
            end = .lost("The broker does not answer", .other)
        }
        if end == nil, stage == .subscribing { subscribe() }
        if end == nil, stage == .online { sendNames() }
        guard exchange.isEnding else { return end }
        return hasSaidFarewell() ? .asTold : nil
    }

    /// With `catch-up`, the names that were heard are saved once per keepalive.
    private func setSaveTime() {
        guard configuration.catchesUp, configuration.keepalive > 0 else { return }
        saveTime = Clock.monotonic + (Int64(configuration.keepalive) + 1) * 1_000_000_000
    }

    /// Whether nothing more is to be done at exit. Names are lost with a connection that is closed before the broker has
    /// answered.
    private func hasSaidFarewell() -> Bool {
        let limit = farewellEnd ?? Clock.monotonic + Self.farewell
        farewellEnd = limit
        guard end == nil else { return true }
        let isDone = stage != .online || exchange.status.waiting == 0 && traffic.isConfirmed
        guard isDone || limit <= Clock.monotonic else { return false }
        client.disconnect()
        return true
    }

    /// One message at a time, as long as the connection accepts it, so that names wait in our own, bounded queue.
    private func sendNames() {
        var count = 0
        while client.isReady, count < Self.portion, let message = traffic.nextMessage() {
            client.publish(message.topic, message.payload, retained: traffic.retains)
            count += 1
        }
        if client.isReady, traffic.startsQuestion() { client.ask(traffic.question) }
        // The socket must be checked in between.
        if count == Self.portion { exchange.brokerWakeUp.signal() }
    }

    // MARK: What the broker says

    private func connected(_ reason: Int32, _ abilities: BrokerAbilities) {
        guard reason == 0 else {
            let text = MosquittoClient.reason(reason)
            end =
                switch UInt32(bitPattern: reason) {
                // It may accept this bridge later.
                case MQTT_RC_SERVER_UNAVAILABLE.rawValue, MQTT_RC_SERVER_BUSY.rawValue, MQTT_RC_QUOTA_EXCEEDED.rawValue,
                    MQTT_RC_CONNECTION_RATE_EXCEEDED.rawValue, MQTT_RC_USE_ANOTHER_SERVER.rawValue,
                    MQTT_RC_SERVER_MOVED.rawValue, MQTT_RC_UNSPECIFIED.rawValue:
                    .lost(text, .other)
                default: .refused("\(configuration.broker) refuses this bridge: \(text).")
                }
            return
        }
        if let fault = traffic.beginConnection(abilities) { return end = .refused(fault) }
        stage = .subscribing
        deadline = Clock.monotonic + Self.timeLimit
        let (filters, refused) = traffic.currentFilters()
        for (filter, reason) in refused { note(filter, reason) }
        unrequested = filters[...]
        subscribe()
    }

    private func subscribe() {
        // With one subscription under way, or with all, if the process takes them.
        while !unrequested.isEmpty, client.isReady, subscriptions.isEmpty {
            let portion = unrequested.prefix(traffic.portion(of: unrequested))
            unrequested = unrequested.dropFirst(portion.count)
            subscriptionCount += 1
            subscriptions[subscriptionCount] = portion
            client.subscribe(portion, as: subscriptionCount, retained: traffic.retains)
        }
        goOnlineIfAnswered()
    }

    private func subscribed(_ number: Int, _ reasons: [Int32]) {
        guard let filters = subscriptions.removeValue(forKey: number) else { return }
        deadline = Clock.monotonic + Self.timeLimit
        for (filter, reason) in zip(filters, reasons) {
            if reason < 0x80 {
                verdicts.append("\(filter): granted")
            } else {
                note(filter, MosquittoClient.reason(reason))
            }
        }
        subscribe()
    }

    private func note(_ filter: MQTTTopic, _ refusal: String) {
        verdicts.append("\(filter): \(refusal)")
        diagnostics.notice("\(configuration.broker) refuses \(filter): \(refusal); no such name will be heard")
    }

    private func goOnlineIfAnswered() {
        guard subscriptions.isEmpty, unrequested.isEmpty, stage == .subscribing, end == nil else { return }
        stage = .online
        onlineSince = Clock.monotonic
        deadline = nil
        let verdicts = verdicts.sorted()
        exchange.count { $0.filters = verdicts }
        exchange.goOnline()
        // After the retained messages, if they are wanted.
        traffic.endSubscribing()
        if traffic.retains {
            client.ask(traffic.question)
        } else {
            hasReplayed = true
        }
        diagnostics.notice("connected to \(configuration.broker)")
        exchange.brokerWakeUp.signal()
    }

    private func answered() {
        if hasReplayed {
            hasProgressed = true
            return traffic.confirm()
        }
        // The first question, after the subscriptions.
        hasReplayed = true
        traffic.endReplay()
    }

    private func ended(_ connectionEnd: ConnectionEnd) {
        guard end == nil else { return }
        end =
            switch connectionEnd {
            case .other(let text): .lost(text, .other)
            case .closed(let text): .lost(text, .broker)
            case .reason(Int32(MQTT_RC_SESSION_TAKEN_OVER.rawValue)):
                .lost("Another client connected with the same ID", .takeover)
            case .reason(let code):
                .lost(MosquittoClient.reason(code), Self.isAboutContent(code) ? .broker : .other)
            }
    }

    /// Whether a reason can be about a message or a filter. See section 3.14.2.1 of MQTT 5.
    private static func isAboutContent(_ code: Int32) -> Bool {
        switch UInt32(bitPattern: code) {
        case MQTT_RC_SERVER_BUSY.rawValue, MQTT_RC_SERVER_SHUTTING_DOWN.rawValue, MQTT_RC_KEEP_ALIVE_TIMEOUT.rawValue,
            MQTT_RC_MESSAGE_RATE_TOO_HIGH.rawValue, MQTT_RC_QUOTA_EXCEEDED.rawValue,
            MQTT_RC_ADMINISTRATIVE_ACTION.rawValue, MQTT_RC_USE_ANOTHER_SERVER.rawValue,
            MQTT_RC_SERVER_MOVED.rawValue, MQTT_RC_CONNECTION_RATE_EXCEEDED.rawValue,
            MQTT_RC_MAXIMUM_CONNECT_TIME.rawValue:
            false
        default: true
        }
    }
}
