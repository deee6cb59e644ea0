// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// The interfaces of D-Bus that every object has. See the D-Bus specification, "Standard Interfaces".
enum StandardInterfaces {
    struct Properties {
        static let version: UInt32 = 1
        let observers: Int
        let parked: Int

        static let none = Properties(observers: 0, parked: 0)
        static let names = ["Version", "Observers", "Parked"]

        subscript(name: String) -> BusValue? {
            switch name {
            case "Version": .uint32(Properties.version)
            case "Observers": .uint32(UInt32(observers))
            case "Parked": .uint32(UInt32(parked))
            default: nil
            }
        }
    }

    private static let properties = "org.freedesktop.DBus.Properties"
    private static let introspectable = "org.freedesktop.DBus.Introspectable"
    private static let peer = "org.freedesktop.DBus.Peer"

    /// Answers a call of one of them.
    ///
    /// - Parameter properties: what the agent's properties are; the relay has none.
    /// - Returns: false if it is for another interface.
    static func answer(
        _ call: BusCall,
        to service: LifecycleService = .agent,
        _ properties: () -> Properties,
        on link: BusLink
    ) throws(BusFault) -> Bool {
        let isStandard = [peer, introspectable, self.properties].contains(call.interface)
        if isStandard, !call.wantsReply {
            // It would have no effect.
            call.arguments.closeDescriptors()
            return true
        }
        if call.interface == peer || call.interface.isEmpty && call.member == "Ping" {
            try answerPeer(call, on: link)
        } else if call.interface == introspectable || call.interface.isEmpty && call.member == "Introspect" {
            try introspect(call, service, on: link)
        } else if service == .agent, call.interface == self.properties, call.path == service.path {
            try answerProperties(call, properties(), on: link)
        } else {
            return false
        }
        return true
    }

    private static func introspect(
        _ call: BusCall,
        _ service: LifecycleService,
        on link: BusLink
    ) throws(BusFault) {
        guard call.member == "Introspect" else {
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
        try expect(call, "")
        guard let xml = Introspection.text(for: call.path, of: service) else { throw .unknownMethod(call) }
        link.reply(to: call, [.string(xml)])
    }

    private static func answerPeer(_ call: BusCall, on link: BusLink) throws(BusFault) {
        switch call.member {
        case "Ping":
            try expect(call, "")
            link.reply(to: call)
        case "GetMachineId":
            try expect(call, "")
            let files = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            guard let text = files.lazy.compactMap({ SystemFile.text(of: $0) }).first else {
                throw .failed("This machine has no id.")
            }
            link.reply(to: call, [.string(text.filter { $0 != "\n" })])
        default:
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
    }

    private static func answerProperties(
        _ call: BusCall,
        _ properties: Properties,
        on link: BusLink
    ) throws(BusFault) {
        switch call.member {
        case "Get":
            try expect(call, "ss")
            try checkInterface(call)
            let name = call.arguments[1].string ?? ""
            guard let value = properties[name] else { throw .unknownProperty(name) }
            link.reply(to: call, [.variant(value)])
        case "GetAll":
            try expect(call, "s")
            try checkInterface(call)
            let all = Properties.names.compactMap { name in properties[name].map { (name, $0) } }
            link.reply(to: call, [.dictionary(all)])
        case "Set":
            call.arguments.closeDescriptors()
            guard call.arguments.map(\.signature) == ["s", "s", "v"] else {
                throw .invalidArguments("Set takes arguments of type 'ssv'.")
            }
            try checkInterface(call)
            let name = call.arguments[1].string ?? ""
            guard properties[name] != nil else { throw .unknownProperty(name) }
            throw BusFault(
                name: "org.freedesktop.DBus.Error.PropertyReadOnly",
                message: "The property '\(name)' can only be read."
            )
        default:
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
    }

    private static func checkInterface(_ call: BusCall) throws(BusFault) {
        let interface = call.arguments[0].string ?? ""
        guard interface == AgentInterface.name || interface.isEmpty else {
            throw BusFault(
                name: "org.freedesktop.DBus.Error.UnknownInterface",
                message: "There is no interface '\(interface)' at \(call.path)."
            )
        }
    }

    /// Checks the types of a call's arguments. If they are wrong, descriptors are closed.
    private static func expect(_ call: BusCall, _ signature: String) throws(BusFault) {
        let given = call.arguments.map(\.signature).joined()
        guard given != signature else { return }
        call.arguments.closeDescriptors()
        throw ArgumentError.types(expected: signature, given: given).fault(for: call.member)
    }
}

/// The agent's introspection data; the installed file has the same content, which a test verifies.
enum Introspection {
    private static let doctype = """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
          "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">

        """

    /// The description of an object; nil if there is none at this path.
    static func text(for path: String, of service: LifecycleService) -> String? {
        if path == service.path {
            let own = service == .agent ? agent + standard + propertiesInterface : relay + standard
            return doctype + "<node>\n" + own + "</node>\n"
        }
        let prefix = path == "/" ? "/" : path + "/"
        guard service.path.utf8.starts(with: prefix.utf8) else { return nil }
        let child = service.path.dropFirst(prefix.count).prefix { $0 != "/" }
        return doctype + "<node>\n  <node name=\"\(child)\"/>\n</node>\n"
    }

    /// The own interface of a service, as a file to install.
    static func file(of service: LifecycleService) -> String {
        let own = service == .agent ? agent : relay
        return "<!-- SPDX-License-Identifier: Apache-2.0 -->\n" + doctype + "<node>\n" + own + "</node>\n"
    }

    private static let agent = interface(
        AgentInterface.name,
        AgentInterface.methods,
        AgentInterface.signals,
        properties
    )
    private static let relay = interface(RelayInterface.name, RelayInterface.methods, RelayInterface.signals, "")

    /// An interface, as its messages describe themselves.
    private static func interface(
        _ name: String,
        _ methods: [any ProtocolCall.Type],
        _ signals: [any ProtocolMessage.Type],
        _ properties: String
    ) -> String {
        var text = "  <interface name=\"\(name)\">\n"
        for method in methods { text += element("method", method.member, arguments(method, "in") + answer(of: method)) }
        for signal in signals { text += element("signal", signal.member, arguments(signal, nil)) }
        return text + properties + "  </interface>\n"
    }

    private static func answer<Call: ProtocolCall>(of call: Call.Type) -> String { arguments(Call.Answer.self, "out") }

    private static func arguments(_ type: any ProtocolArguments.Type, _ direction: String?) -> String {
        type.parameters.map { parameter in
            let direction = direction.map { " direction=\"\($0)\"" } ?? ""
            return "      <arg name=\"\(parameter.name)\" type=\"\(parameter.type)\"\(direction)/>\n"
        }.joined()
    }

    private static func element(_ kind: String, _ name: String, _ content: String) -> String {
        "    <\(kind) name=\"\(name)\">\n\(content)    </\(kind)>\n"
    }

    private static let properties = """
            <property name="Version" type="u" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="const"/>
            </property>
            <property name="Observers" type="u" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <property name="Parked" type="u" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>

        """

    private static let standard = """
          <interface name="org.freedesktop.DBus.Introspectable">
            <method name="Introspect">
              <arg name="xml" type="s" direction="out"/>
            </method>
          </interface>
          <interface name="org.freedesktop.DBus.Peer">
            <method name="Ping"/>
            <method name="GetMachineId">
              <arg name="id" type="s" direction="out"/>
            </method>
          </interface>

        """

    private static let propertiesInterface = """
          <interface name="org.freedesktop.DBus.Properties">
            <method name="Get">
              <arg name="interface" type="s" direction="in"/>
              <arg name="name" type="s" direction="in"/>
              <arg name="value" type="v" direction="out"/>
            </method>
            <method name="GetAll">
              <arg name="interface" type="s" direction="in"/>
              <arg name="values" type="a{sv}" direction="out"/>
            </method>
            <method name="Set">
              <arg name="interface" type="s" direction="in"/>
              <arg name="name" type="s" direction="in"/>
              <arg name="value" type="v" direction="in"/>
            </method>
          </interface>

        """
}
