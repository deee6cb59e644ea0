// SPDX-License-Identifier: Apache-2.0

/// What the agent says of itself; the file that is installed is the same, and a test compares them.
enum Introspection {
    private static let doctype = """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
          "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">

        """

    /// The description of an object; nil if there is none at this path.
    static func text(for path: String) -> String? {
        if path == Agent.path { return doctype + "<node>\n" + agent + standard + "</node>\n" }
        let prefix = path == "/" ? "/" : path + "/"
        guard Agent.path.utf8.starts(with: prefix.utf8) else { return nil }
        let child = Agent.path.dropFirst(prefix.count).prefix { $0 != "/" }
        return doctype + "<node>\n  <node name=\"\(child)\"/>\n</node>\n"
    }

    /// The agent's own interface, as a file to install.
    static var file: String {
        "<!-- SPDX-License-Identifier: Apache-2.0 -->\n" + doctype + "<node>\n" + agent + "</node>\n"
    }

    private static let agent = """
          <interface name="org.notifybus.Agent1">
            <method name="Register">
              <arg name="options" type="a{sv}" direction="in"/>
              <arg name="state" type="s" direction="out"/>
              <arg name="pending" type="as" direction="out"/>
            </method>
            <method name="AddNames">
              <arg name="names" type="as" direction="in"/>
              <arg name="prefixes" type="as" direction="in"/>
            </method>
            <method name="RemoveNames">
              <arg name="names" type="as" direction="in"/>
              <arg name="prefixes" type="as" direction="in"/>
            </method>
            <method name="Report">
              <arg name="state" type="s" direction="in"/>
            </method>
            <method name="SetState">
              <arg name="target" type="s" direction="in"/>
              <arg name="state" type="s" direction="in"/>
              <arg name="freeze" type="b" direction="in"/>
              <arg name="connections" type="u" direction="out"/>
            </method>
            <method name="SetNameState">
              <arg name="name" type="s" direction="in"/>
              <arg name="value" type="t" direction="in"/>
              <arg name="stamp" type="t" direction="out"/>
            </method>
            <method name="GetNameState">
              <arg name="name" type="s" direction="in"/>
              <arg name="value" type="t" direction="out"/>
            </method>
            <method name="FollowFocus">
              <arg name="follows" type="b" direction="in"/>
            </method>
            <method name="Release">
              <arg name="target" type="s" direction="in"/>
              <arg name="connections" type="u" direction="out"/>
            </method>
            <method name="SetForeground">
              <arg name="process" type="u" direction="in"/>
            </method>
            <method name="List">
              <arg name="connections" type="aa{sv}" direction="out"/>
            </method>
            <method name="Status">
              <arg name="status" type="a{sv}" direction="out"/>
            </method>
            <signal name="StateChanged">
              <arg name="connection" type="s"/>
              <arg name="process" type="u"/>
              <arg name="application" type="s"/>
              <arg name="from" type="s"/>
              <arg name="to" type="s"/>
            </signal>
            <signal name="FactChanged">
              <arg name="source" type="s"/>
              <arg name="fact" type="s"/>
            </signal>
            <signal name="Decided">
              <arg name="decider" type="s"/>
            </signal>
            <property name="Version" type="u" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="const"/>
            </property>
            <property name="Observers" type="u" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <property name="Parked" type="u" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
          </interface>

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
