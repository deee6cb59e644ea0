// SPDX-License-Identifier: Apache-2.0

import CBridgeDBus
package import NotifyBus

/// The bridge on the bus: one bridge owns `org.notifybus.Bridge1`, and reports its status there. Only the main thread
/// uses it.
package final class StatusService {
    /// Why there is no service.
    package enum Fault: Error {
        case noBus(String)
        case anotherBridge
        case notAllowed(String)
    }

    package static let name = "org.notifybus.Bridge1"
    private static let path = "/org/notifybus/Bridge1"

    private let connection: OpaquePointer
    private let broker: BrokerAddress

    package init(on bus: NotifyCenter.Bus, broker: BrokerAddress) throws(Fault) {
        self.broker = broker
        connection = try StatusService.connect(to: bus)
        dbus_connection_set_exit_on_disconnect(connection, 0)
        var error = DBusError()
        dbus_error_init(&error)
        defer { dbus_error_free(&error) }
        let answer = dbus_bus_request_name(connection, Self.name, UInt32(DBUS_NAME_FLAG_DO_NOT_QUEUE), &error)
        guard answer == DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER else {
            let reason = Self.text(of: error)
            close()
            throw answer < 0 ? .notAllowed(reason) : .anotherBridge
        }
    }

    private static func connect(to bus: NotifyCenter.Bus) throws(Fault) -> OpaquePointer {
        var error = DBusError()
        dbus_error_init(&error)
        defer { dbus_error_free(&error) }
        let address: String
        do throws(NotifyBusError) {
            // Not by libdbus, which starts a bus of its own if it knows no address.
            address = try bus.resolveAddress()
        } catch {
            throw .noBus(error.description)
        }
        guard let connection = dbus_connection_open_private(address, &error) else { throw .noBus(text(of: error)) }
        guard dbus_bus_register(connection, &error) != 0 else {
            dbus_connection_close(connection)
            dbus_connection_unref(connection)
            throw .noBus(text(of: error))
        }
        return connection
    }

    private static func text(of error: DBusError) -> String {
        error.message.map { String(cString: $0) } ?? "no reason given"
    }

    /// Releases the name.
    package func close() {
        dbus_connection_close(connection)
    }

    deinit {
        if isConnected { dbus_connection_close(connection) }
        dbus_connection_unref(connection)
    }

    package var isConnected: Bool { dbus_connection_get_is_connected(connection) != 0 }

    /// Readable when there is a call to answer; -1 if the bus is gone.
    var descriptor: Int32 {
        var descriptor: Int32 = -1
        return dbus_connection_get_unix_fd(connection, &descriptor) != 0 ? descriptor : -1
    }

    /// Answers pending calls.
    func serve(_ status: () -> BridgeStatus) {
        _ = dbus_connection_read_write(connection, 0)
        while let message = dbus_connection_pop_message(connection) {
            defer { dbus_message_unref(message) }
            guard dbus_message_get_type(message) == DBUS_MESSAGE_TYPE_METHOD_CALL,
                dbus_message_get_no_reply(message) == 0, let reply = reply(to: message, status)
            else { continue }
            dbus_connection_send(connection, reply, nil)
            dbus_message_unref(reply)
        }
        dbus_connection_flush(connection)
    }

    private func reply(to call: OpaquePointer, _ status: () -> BridgeStatus) -> OpaquePointer? {
        func calls(_ interface: String, _ member: String) -> Bool {
            dbus_message_is_method_call(call, interface, member) != 0
        }
        if calls("org.freedesktop.DBus.Peer", "Ping") { return dbus_message_new_method_return(call) }
        if calls("org.freedesktop.DBus.Introspectable", "Introspect") {
            let reply = dbus_message_new_method_return(call)
            return reply.map { Dictionary.append(Self.introspection, to: $0) } ?? nil
        }
        guard dbus_message_has_path(call, Self.path) != 0, calls(Self.name, "Status") else {
            return dbus_message_new_error(
                call,
                DBUS_ERROR_UNKNOWN_METHOD,
                "The only method is \(Self.name).Status at \(Self.path)."
            )
        }
        guard let reply = dbus_message_new_method_return(call) else { return nil }
        let status = status()
        var entries = Dictionary(reply)
        entries.add("broker", .text(broker.description))
        entries.add("connected", .flag(status.isConnected))
        entries.add("since", .number(status.since))
        entries.add("sent", .number(UInt64(clamping: status.sent)))
        entries.add("received", .number(UInt64(clamping: status.received)))
        entries.add("merged", .number(UInt64(clamping: status.merged)))
        entries.add("waiting", .number(UInt64(clamping: status.waiting)))
        entries.add("refused", .number(UInt64(clamping: status.refused)))
        entries.add("duplicates", .number(UInt64(clamping: status.duplicates)))
        entries.add("lost", .number(UInt64(clamping: status.lost)))
        entries.add("filters", .list(status.filters))
        entries.end()
        return reply
    }

    private static let introspection = """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
        <node>
          <interface name="org.notifybus.Bridge1">
            <method name="Status"><arg name="status" type="a{sv}" direction="out"/></method>
          </interface>
          <interface name="org.freedesktop.DBus.Introspectable">
            <method name="Introspect"><arg name="xml" type="s" direction="out"/></method>
          </interface>
          <interface name="org.freedesktop.DBus.Peer"><method name="Ping"/></interface>
        </node>
        """
}

/// D-Bus types; the compiler doesn't import libdbus's macros for them.
private enum DBusType {
    static let array = Int32(UInt8(ascii: "a"))
    static let boolean = Int32(UInt8(ascii: "b"))
    static let entry = Int32(UInt8(ascii: "e"))
    static let number = Int32(UInt8(ascii: "t"))
    static let text = Int32(UInt8(ascii: "s"))
    static let variant = Int32(UInt8(ascii: "v"))
}

/// Writes an `a{sv}` into a message.
private struct Dictionary {
    enum Value {
        case text(String)
        case flag(Bool)
        case number(UInt64)
        case list([String])
    }

    private var message = DBusMessageIter()
    private var array = DBusMessageIter()

    init(_ reply: OpaquePointer) {
        dbus_message_iter_init_append(reply, &message)
        dbus_message_iter_open_container(&message, DBusType.array, "{sv}", &array)
    }

    mutating func add(_ key: String, _ value: Value) {
        var entry = DBusMessageIter()
        var variant = DBusMessageIter()
        dbus_message_iter_open_container(&array, DBusType.entry, nil, &entry)
        Self.append(key, to: &entry)
        switch value {
        case .text(let text):
            dbus_message_iter_open_container(&entry, DBusType.variant, "s", &variant)
            Self.append(text, to: &variant)
        case .flag(let flag):
            dbus_message_iter_open_container(&entry, DBusType.variant, "b", &variant)
            var bool: dbus_bool_t = flag ? 1 : 0
            dbus_message_iter_append_basic(&variant, DBusType.boolean, &bool)
        case .number(var number):
            dbus_message_iter_open_container(&entry, DBusType.variant, "t", &variant)
            dbus_message_iter_append_basic(&variant, DBusType.number, &number)
        case .list(let texts):
            dbus_message_iter_open_container(&entry, DBusType.variant, "as", &variant)
            var list = DBusMessageIter()
            dbus_message_iter_open_container(&variant, DBusType.array, "s", &list)
            for text in texts { Self.append(text, to: &list) }
            dbus_message_iter_close_container(&variant, &list)
        }
        dbus_message_iter_close_container(&entry, &variant)
        dbus_message_iter_close_container(&array, &entry)
    }

    mutating func end() {
        dbus_message_iter_close_container(&message, &array)
    }

    /// Appends a text to a reply.
    static func append(_ text: String, to reply: OpaquePointer) -> OpaquePointer {
        var message = DBusMessageIter()
        dbus_message_iter_init_append(reply, &message)
        append(text, to: &message)
        return reply
    }

    private static func append(_ text: String, to iterator: inout DBusMessageIter) {
        text.withCString { text in
            var text: UnsafePointer<CChar>? = text
            dbus_message_iter_append_basic(&iterator, DBusType.text, &text)
        }
    }
}
