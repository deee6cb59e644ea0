// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import CommandSupport
import Glibc
import NotifyNames

/// One connection to a broker through libmosquitto, in a process of its own: see ``ConnectionProcess``. Only one thread at a time uses it; its closures run on that thread,
/// inside ``read()`` and ``write()``. See libmosquitto(3).
final class MosquittoClient {
    private let client: OpaquePointer
    /// The properties of a retained message.
    private var retainedProperties: OpaquePointer?

    /// The broker has answered: 0, or the reason why it refuses this client. See section 3.2.2.2 of MQTT 5.
    var onConnect: (Int32, BrokerAbilities) -> Void = { _, _ in }
    /// The connection has ended: the broker's reason, or a libmosquitto error.
    var onDisconnect: (Int32) -> Void = { _ in }
    /// The broker has answered a subscription with a reason for each of its filters.
    var onSubscribe: (Int32, [Int32]) -> Void = { _, _ in }
    /// The broker has answered ``ask(_:)``.
    var onAnswer: () -> Void = {}
    var onMessage: (_ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, _ isRetained: Bool) -> Void =
        { _, _, _ in }

    /// How long the broker keeps a retained stamp, in seconds: 7 days.
    private static let expiry: UInt32 = 604_800
    /// The largest message that the broker may send. Messages for a bridge have at most 1,662 bytes.
    private static let maximumPacket: UInt32 = 16_384

    /// The keepalive that the broker has asked for, in seconds; nil if it leaves that to the client.
    private(set) var keepalive: Int32?

    init(_ login: BrokerLogin) throws(ConfigurationError) {
        mosquitto_lib_init()
        guard let client = mosquitto_new(login.id, true, nil) else {
            throw ConfigurationError("Cannot create an MQTT client: \(describe(errno: errno)).")
        }
        self.client = client
        mosquitto_user_data_set(client, Unmanaged.passUnretained(self).toOpaque())
        mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5)
        mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1)
        mosquitto_property_add_int32(
            &retainedProperties,
            Int32(MQTT_PROP_MESSAGE_EXPIRY_INTERVAL.rawValue),
            Self.expiry
        )
        setCallbacks()
        if let user = login.user {
            try check(mosquitto_username_pw_set(client, user, login.password), "The user or the password")
        }
        guard login.broker.isEncrypted else { return }
        let tls = login.tls
        if tls.authorities == nil { mosquitto_int_option(client, MOSQ_OPT_TLS_USE_OS_CERTS, 1) }
        if tls.authorities != nil || tls.certificate != nil {
            // There is no user to type a passphrase.
            let noPassphrase:
                @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 =
                    { _, _, _, _ in 0 }
            // It demands authorities. The option above has those of the system, wherever OpenSSL finds them; this folder of
            // theirs adds none, and need not exist.
            let folder = tls.authorities == nil ? "/etc/ssl/certs" : nil
            let status = mosquitto_tls_set(client, tls.authorities, folder, tls.certificate, tls.key, noPassphrase)
            try check(status, "A certificate or a key")
        }
    }

    deinit {
        mosquitto_destroy(client)
        mosquitto_property_free_all(&retainedProperties)
    }

    private func check(_ status: Int32, _ what: String) throws(ConfigurationError) {
        if status != 0 { throw ConfigurationError("\(what) can't be used: \(Self.text(status)).") }
    }

    private func setCallbacks() {
        mosquitto_connect_v5_callback_set(client) { _, object, reason, _, properties in
            guard let self = MosquittoClient.at(object) else { return }
            self.onConnect(reason, self.abilities(in: properties))
        }
        mosquitto_disconnect_v5_callback_set(client) { _, object, reason, _ in
            MosquittoClient.at(object)?.onDisconnect(reason)
        }
        mosquitto_subscribe_v5_callback_set(client) { _, object, id, count, granted, _ in
            let reasons = UnsafeBufferPointer(start: granted, count: granted == nil ? 0 : max(0, Int(count)))
            MosquittoClient.at(object)?.onSubscribe(id, Array(reasons))
        }
        mosquitto_unsubscribe_v5_callback_set(client) { _, object, _, _ in
            MosquittoClient.at(object)?.onAnswer()
        }
        mosquitto_message_v5_callback_set(client) { _, object, message, _ in
            guard let message = message?.pointee, let topic = message.topic else { return }
            MosquittoClient.at(object)?.onMessage(
                UnsafeRawBufferPointer(start: topic, count: strlen(topic)),
                UnsafeRawBufferPointer(
                    start: message.payload,
                    count: message.payload == nil ? 0 : max(0, Int(message.payloadlen))
                ),
                message.retain
            )
        }
    }

    private func abilities(in properties: OpaquePointer?) -> BrokerAbilities {
        var abilities = BrokerAbilities()
        var (size, seconds, flag): (UInt32, UInt16, UInt8) = (0, 0, 0)
        if mosquitto_property_read_int32(properties, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), &size, false) != nil
        {
            abilities.maximumPacket = Int(size)
        }
        if mosquitto_property_read_byte(properties, Int32(MQTT_PROP_RETAIN_AVAILABLE.rawValue), &flag, false) != nil {
            abilities.retains = flag != 0
        }
        if mosquitto_property_read_byte(properties, Int32(MQTT_PROP_WILDCARD_SUB_AVAILABLE.rawValue), &flag, false)
            != nil
        {
            abilities.hasWildcards = flag != 0
        }
        if mosquitto_property_read_int16(properties, Int32(MQTT_PROP_SERVER_KEEP_ALIVE.rawValue), &seconds, false)
            != nil
        {
            keepalive = Int32(seconds)
        }
        return abilities
    }

    private static func at(_ object: UnsafeMutableRawPointer?) -> MosquittoClient? {
        // Only called during calls made by this object, so it is alive.
        object.map { Unmanaged<MosquittoClient>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Connects, and blocks until the connection is established or fails: two minutes if the host does not answer. The
    /// broker's own answer comes later.
    func connect(to address: BrokerAddress, keepalive: Int32) -> Int32 {
        var properties: OpaquePointer?
        mosquitto_property_add_int32(&properties, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), Self.maximumPacket)
        defer { mosquitto_property_free_all(&properties) }
        return mosquitto_connect_bind_v5(client, address.host, address.port, keepalive, nil, properties)
    }

    /// The socket; -1 if there is none.
    var descriptor: Int32 { mosquitto_socket(client) }

    /// Whether data is queued: then call ``write()`` when the socket is writable.
    var wantsToWrite: Bool { mosquitto_want_write(client) }

    func read() -> Int32 { mosquitto_loop_read(client, 1) }
    func write() -> Int32 { mosquitto_loop_write(client, 1) }
    /// Checks whether a ping or the answer to one is due.
    func checkKeepalive() -> Int32 { mosquitto_loop_misc(client) }

    func publish(_ topic: MQTTTopic, _ payload: String, retained: Bool) -> Int32 {
        var payload = payload
        return topic.withCString { topic in
            payload.withUTF8 { payload in
                let properties = retained ? retainedProperties : nil
                return mosquitto_publish_v5(
                    client,
                    nil,
                    topic,
                    Int32(payload.count),
                    payload.baseAddress,
                    0,
                    retained,
                    properties
                )
            }
        }
    }

    /// Subscribes to filters, excluding what this client itself publishes.
    ///
    /// - Returns: an error, or 0 and the number that ``onSubscribe`` gets.
    func subscribe(_ filters: [MQTTTopic], retained: Bool) -> (status: Int32, id: Int32) {
        let copies: [UnsafeMutablePointer<CChar>?] = filters.map { $0.withCString { strdup($0) } }
        defer { for copy in copies { free(copy) } }
        let retainHandling = retained ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS : MQTT_SUB_OPT_SEND_RETAIN_NEVER
        let options = Int32(MQTT_SUB_OPT_NO_LOCAL.rawValue) | Int32(retainHandling.rawValue)
        var id: Int32 = 0
        let status = copies.withUnsafeBufferPointer { copies in
            mosquitto_subscribe_multiple(client, &id, Int32(copies.count), copies.baseAddress, 0, options, nil)
        }
        return (status, id)
    }

    /// Asks the broker to remove a subscription that doesn't exist. It answers once it has handled everything before
    /// that.
    func ask(_ filter: MQTTTopic) -> Int32 {
        filter.withCString { mosquitto_unsubscribe_v5(client, nil, $0, nil) }
    }

    func disconnect() { mosquitto_disconnect_v5(client, 0, nil) }

    /// The text of a libmosquitto error.
    static func text(_ status: Int32) -> String {
        let reason =
            status == Int32(MOSQ_ERR_ERRNO.rawValue)
            ? strerror(errno).map { UnsafePointer($0) } : mosquitto_strerror(status)
        // libmosquitto's texts are sentences.
        let text = reason.map { String(cString: $0) } ?? "error \(status)"
        return text.utf8.last == UInt8(ascii: ".") ? String(text.dropLast()) : text
    }

    /// The text of a broker's reason code.
    static func reason(_ code: Int32) -> String {
        mosquitto_reason_string(code).map { String(cString: $0) } ?? "reason \(code)"
    }
}
