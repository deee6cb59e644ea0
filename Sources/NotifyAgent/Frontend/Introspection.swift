// SPDX-License-Identifier: Apache-2.0

import NotifyCore

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
