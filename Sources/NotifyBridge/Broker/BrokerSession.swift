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
        /// With the reason, and whether another client connected with the same id.
        case lost(String, isTakenOver: Bool)
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
    /// The most filters in one subscription, and the most names sent before the socket is read.
    private static let portion = 64

    private let client: MosquittoClient
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
    /// When something was last written. A ping is due one keepalive later.
    private var lastWrite = Clock.monotonic
    /// The requested filters, by subscription id.
    private var subscriptions: [Int32: ArraySlice<MQTTTopic>] = [:]
    private var verdicts: [String] = []
    /// Whether the broker has sent its retained messages.
    private var hasReplayed = false
    /// Since when names have been crossing; nil if they never did.
    private(set) var onlineSince: Int64?

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
        client = try MosquittoClient(id: BrokerSession.newID(), configuration)
    }

    /// A client ID for one connection. Nobody can learn it from what the bridge publishes, or take its place on the
    /// broker by using it: a broker ends the connection of a client when another one connects with its ID.
    private static func newID() -> String {
        // From getrandom(2).
        var generator = SystemRandomNumberGenerator()
        return "nb1-\(Origin(high: generator.next(), low: generator.next()))"
    }

    /// Connects, runs the connection, and returns when it has ended.
    func run() -> End {
        client.onConnect = { [unowned self] in connected($0) }
        client.onDisconnect = { [unowned self] in disconnected($0) }
        client.onSubscribe = { [unowned self] in subscribed($0, $1) }
        client.onAnswer = { [unowned self] in answered() }
        client.onMessage = { [unowned self] in traffic.receive($0, $1, isRetained: $2) }
        let status = client.connect(to: configuration.broker, keepalive: configuration.keepalive)
        if status != 0 { return .lost(MosquittoClient.text(status), isTakenOver: false) }
        deadline = Clock.monotonic + Self.timeLimit
        while true {
            if let end = turn() {
                if stage == .online { exchange.goOffline() }
                return end
            }
        }
    }

    /// Waits for work, and does it.
    private func turn() -> End? {
        var sources = [
            pollfd(fd: client.descriptor, events: Int16(POLLIN | (client.wantsToWrite ? POLLOUT : 0)), revents: 0),
            pollfd(fd: exchange.brokerWakeUp.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        waitForEvents(&sources, until: [deadline, pingTime, traffic.wakeTime, farewellEnd].compactMap { $0 }.min())
        if sources[1].revents != 0 { exchange.brokerWakeUp.clear() }
        if sources[0].revents & Int16(POLLOUT) != 0 {
            lastWrite = Clock.monotonic
            note(client.write())
        }
        if sources[0].revents & ~Int16(POLLOUT) != 0 { note(client.read()) }
        if end == nil, let time = pingTime, time <= Clock.monotonic {
            lastWrite = Clock.monotonic
            traffic.save()
        }
        if end == nil { note(client.checkKeepalive()) }
        traffic.postWhatWaits()
        if end == nil, let deadline, deadline <= Clock.monotonic {
            end = .lost("The broker does not answer", isTakenOver: false)
        }
        if end == nil, stage == .online { sendNames() }
        guard exchange.isEnding else { return end }
        return hasSaidFarewell() ? .asTold : nil
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

    /// When a ping is due. One second is added because libmosquitto counts whole seconds; a broker waits one and a half
    /// keepalives.
    private var pingTime: Int64? {
        configuration.keepalive == 0 ? nil : lastWrite + (Int64(configuration.keepalive) + 1) * 1_000_000_000
    }

    /// One message at a time, as long as the socket accepts it, so that names wait in our own, bounded queue.
    private func sendNames() {
        var count = 0
        while end == nil, !client.wantsToWrite, count < Self.portion, let message = traffic.nextMessage() {
            lastWrite = Clock.monotonic
            note(client.publish(message.topic, message.payload, retained: configuration.catchesUp))
            count += 1
        }
        if end == nil, !client.wantsToWrite, traffic.startsQuestion() {
            lastWrite = Clock.monotonic
            note(client.ask(traffic.question))
        }
        // The socket must be checked in between.
        if count == Self.portion { exchange.brokerWakeUp.signal() }
    }

    private func note(_ status: Int32) {
        guard status != 0, end == nil else { return }
        end = .lost(MosquittoClient.text(status), isTakenOver: false)
    }

    // MARK: What the broker says

    private func connected(_ reason: Int32) {
        guard reason == 0 else {
            let text = MosquittoClient.reason(reason)
            end =
                switch UInt32(bitPattern: reason) {
                // It may accept this bridge later.
                case MQTT_RC_SERVER_UNAVAILABLE.rawValue, MQTT_RC_SERVER_BUSY.rawValue, MQTT_RC_QUOTA_EXCEEDED.rawValue,
                    MQTT_RC_CONNECTION_RATE_EXCEEDED.rawValue, MQTT_RC_USE_ANOTHER_SERVER.rawValue,
                    MQTT_RC_SERVER_MOVED.rawValue, MQTT_RC_UNSPECIFIED.rawValue:
                    .lost(text, isTakenOver: false)
                default: .refused("\(configuration.broker) refuses this bridge: \(text).")
                }
            return
        }
        stage = .subscribing
        deadline = Clock.monotonic + Self.timeLimit
        var rest = traffic.filters[...]
        while !rest.isEmpty, end == nil {
            let portion = rest.prefix(Self.portion)
            rest = rest.dropFirst(Self.portion)
            let (status, id) = client.subscribe(portion, retained: configuration.catchesUp)
            note(status)
            subscriptions[id] = portion
        }
        lastWrite = Clock.monotonic
        goOnlineIfAnswered()
    }

    private func subscribed(_ id: Int32, _ reasons: [Int32]) {
        guard let filters = subscriptions.removeValue(forKey: id) else { return }
        for (filter, reason) in zip(filters, reasons) {
            let isGranted = reason < 0x80
            verdicts.append("\(filter): \(isGranted ? "granted" : MosquittoClient.reason(reason))")
            if !isGranted {
                diagnostics.notice(
                    "\(configuration.broker) refuses \(filter): \(MosquittoClient.reason(reason)); no such name will be heard"
                )
            }
        }
        goOnlineIfAnswered()
    }

    private func goOnlineIfAnswered() {
        guard subscriptions.isEmpty, stage == .subscribing, end == nil else { return }
        stage = .online
        onlineSince = Clock.monotonic
        deadline = nil
        let verdicts = verdicts.sorted()
        exchange.count { $0.filters = verdicts }
        exchange.goOnline()
        // After the retained messages, if they are wanted.
        if configuration.catchesUp {
            note(client.ask(traffic.question))
        } else {
            hasReplayed = true
        }
        diagnostics.notice("connected to \(configuration.broker)")
        exchange.brokerWakeUp.signal()
    }

    private func answered() {
        if hasReplayed { return traffic.confirm() }
        // The first question, after the subscriptions.
        hasReplayed = true
        traffic.endReplay()
    }

    private func disconnected(_ reason: Int32) {
        guard end == nil else { return }
        if reason == Int32(MQTT_RC_SESSION_TAKEN_OVER.rawValue) {
            end = .lost("Another client connected with the same ID", isTakenOver: true)
        } else {
            let text = reason >= 0x80 ? MosquittoClient.reason(reason) : MosquittoClient.text(reason)
            end = .lost(text, isTakenOver: false)
        }
    }
}
