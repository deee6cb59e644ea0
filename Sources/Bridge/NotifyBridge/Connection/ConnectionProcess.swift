// SPDX-License-Identifier: Apache-2.0

import CLinux
import CMosquitto
import CommandSupport
import Glibc
import NotifyCore

/// The process that holds one connection to the broker: libmosquitto, and nothing else.
///
/// Data from a broker can end a process with libmosquitto in it: 2.0 aborts when a packet has a property that MQTT does
/// not know. Here that is a lost connection. The names that wait are in the other process.
enum ConnectionProcess {
    /// The only argument. Standard input is the socket to the bridge.
    static let argument = "--hold-connection"

    /// Whether this process is one.
    static func isWanted(_ arguments: [Argument]) -> Bool {
        arguments.count == 1 && arguments[0].string == argument && ParcelSocket.isOne(STDIN_FILENO)
    }

    /// Returns when the connection has ended, or the bridge has.
    static func run() -> ExitCode {
        linux_dump_no_core()
        let bridge = ParcelSocket(STDIN_FILENO)
        guard case .parcel(let parcel) = bridge.receive(waits: true), let login = BrokerLogin(parcel) else {
            return .failed
        }
        do throws(ConfigurationError) {
            try Holder(login, bridge).run()
        } catch {
            _ = bridge.send(ConnectionEnd.other(error.description).parcel.bytes, waits: true)
        }
        return .done
    }
}

/// How a connection ended.
enum ConnectionEnd {
    /// By a reason code of the broker.
    case reason(Int32)
    /// The broker has closed it without a reason, or has sent what makes no sense.
    case closed(String)
    /// By the network, or by the time that passed.
    case other(String)

    /// From the reason of a disconnection.
    init(_ status: Int32) {
        let faults = [MOSQ_ERR_CONN_LOST, MOSQ_ERR_PROTOCOL, MOSQ_ERR_MALFORMED_PACKET].map { Int32($0.rawValue) }
        self =
            switch status {
            case 0x80...: .reason(status)
            case 0: .closed("The broker has ended it")
            case _ where faults.contains(status): .closed(MosquittoClient.text(status))
            default: .other(MosquittoClient.text(status))
            }
    }

    init(_ parcel: Parcel) {
        self =
            switch parcel.number(0) {
            case 0: .other(parcel.text(1))
            case 1: .closed(parcel.text(1))
            case let code: .reason(Int32(clamping: code))
            }
    }

    var parcel: Parcel {
        switch self {
        case .other(let text): Parcel(.ended, [Parcel.field(0), Parcel.field(text)])
        case .closed(let text): Parcel(.ended, [Parcel.field(1), Parcel.field(text)])
        case .reason(let code): Parcel(.ended, [Parcel.field(Int(code))])
        }
    }
}

/// Passes on between the bridge and libmosquitto.
private final class Holder {
    /// Longer ones are no stamp, however long they are.
    private static let longestPayload = 1_024
    /// The most parcels that are taken before the broker is heard.
    private static let portion = 64

    private let bridge: ParcelSocket
    private let client: MosquittoClient
    private let login: BrokerLogin
    /// When something was last written. A ping is due one keepalive later.
    private var lastWrite = Clock.monotonic
    /// The bridge's number of each subscription, by that of libmosquitto.
    private var subscriptions: [Int32: Int] = [:]
    private var isOver = false

    init(_ login: BrokerLogin, _ bridge: ParcelSocket) throws(ConfigurationError) {
        self.bridge = bridge
        self.login = login
        client = try MosquittoClient(login)
    }

    func run() {
        client.onConnect = { [unowned self] reason, abilities in tell(abilities.parcel(reason)) }
        client.onDisconnect = { [unowned self] in end(ConnectionEnd($0)) }
        client.onSubscribe = { [unowned self] id, reasons in
            guard let number = subscriptions.removeValue(forKey: id) else { return }
            tell(Parcel(.subscribed, [Parcel.field(number)] + reasons.map { Parcel.field(Int($0)) }))
        }
        client.onAnswer = { [unowned self] in tell(Parcel(.answered)) }
        client.onMessage = { [unowned self] topic, payload, isRetained in
            let fields = [Array(topic), Array(payload.prefix(Self.longestPayload)), Parcel.field(isRetained ? 1 : 0)]
            tell(Parcel(.message, fields))
        }
        note(client.connect(to: login.broker, keepalive: login.keepalive))
        while !isOver { turn() }
    }

    /// The bridge hears everything: while it does not listen, this waits, and the broker's messages remain in the socket.
    private func tell(_ parcel: Parcel) {
        if bridge.send(parcel.bytes, waits: true) != .sent { isOver = true }
    }

    private func end(_ end: ConnectionEnd) {
        if !isOver { tell(end.parcel) }
        isOver = true
    }

    private func note(_ status: Int32) {
        if status != 0 { end(ConnectionEnd(status)) }
    }

    private func turn() {
        let isFull = client.wantsToWrite
        var sources = [
            pollfd(fd: client.descriptor, events: Int16(POLLIN | (isFull ? POLLOUT : 0)), revents: 0),
            // Messages that the broker does not take yet wait in the bridge.
            pollfd(fd: bridge.descriptor, events: Int16(isFull ? 0 : POLLIN), revents: 0),
        ]
        waitForEvents(&sources, until: pingTime)
        if sources[0].revents & Int16(POLLOUT) != 0 {
            lastWrite = Clock.monotonic
            note(client.write())
        }
        if sources[0].revents & ~Int16(POLLOUT) != 0, !isOver { note(client.read()) }
        if let time = pingTime, time <= Clock.monotonic { lastWrite = Clock.monotonic }
        if !isOver { note(client.checkKeepalive()) }
        if sources[1].revents & Int16(POLLIN) != 0 {
            obey()
        } else if sources[1].revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 {
            isOver = true
        }
    }

    /// When a ping is due. One second is added because libmosquitto counts whole seconds; a broker waits one and a half
    /// keepalives.
    private var pingTime: Int64? {
        let keepalive = client.keepalive ?? login.keepalive
        return keepalive == 0 ? nil : lastWrite + (Int64(keepalive) + 1) * 1_000_000_000
    }

    private func obey() {
        for _ in 0..<Self.portion where !isOver && !client.wantsToWrite {
            switch bridge.receive(waits: false) {
            case .parcel(let parcel): obey(parcel)
            case .nothing: return
            case .gone: isOver = true
            }
        }
    }

    private func obey(_ parcel: Parcel) {
        lastWrite = Clock.monotonic
        switch parcel.kind {
        case .subscribe:
            let filters = parcel.fields.dropFirst(2).map { MQTTTopic(bytes: $0) }
            let (status, id) = client.subscribe(filters, retained: parcel.number(1) != 0)
            subscriptions[id] = parcel.number(0)
            note(status)
        case .publish:
            note(client.publish(MQTTTopic(bytes: parcel[0]), parcel.text(1), retained: parcel.number(2) != 0))
        case .ask: note(client.ask(MQTTTopic(bytes: parcel[0])))
        case .disconnect:
            client.disconnect()
            isOver = true
        case .connect, .connected, .subscribed, .answered, .message, .ended: break
        }
    }
}
