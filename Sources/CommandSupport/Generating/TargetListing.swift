// SPDX-License-Identifier: Apache-2.0

/// How a shell learns whom the agent knows.
enum TargetListing {
    /// A pipeline that writes a target a line: `:1.N`, `pid:N`, `app:ID`.
    ///
    /// It does not wait long: someone has pressed a key. An application's name is another program's word, so one that
    /// could mean something to a shell is left out.
    ///
    /// - Parameter bus: the shell's expression for the options that choose the bus.
    static func pipeline(_ bus: String) -> String {
        #"notify-lifecycle list --json -q -t 500ms \#(bus) </dev/null 2>/dev/null | sed -nE '"#
            + #"h;s/^\{"name":"(:[0-9.]+)","pid":([0-9]+),.*/\1\npid:\2/p;"#
            + #"g;s/.*,"application":"([A-Za-z0-9._-]+)",.*/app:\1/p' | sort -u"#
    }
}
