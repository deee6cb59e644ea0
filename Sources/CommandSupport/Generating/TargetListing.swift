// SPDX-License-Identifier: Apache-2.0

/// How a shell finds out which targets the agent knows.
enum TargetListing {
    /// A pipeline that writes one target per line: `:1.N`, `pid:N`, `app:ID`.
    ///
    /// It has a short timeout, as somebody has pressed a key. An application's name is chosen by another program, so
    /// one that could be special to a shell is left out.
    ///
    /// - Parameter bus: the shell's expression for the options that choose the bus.
    static func pipeline(_ bus: String) -> String {
        #"notify-lifecycle list --json -q -t 500ms \#(bus) </dev/null 2>/dev/null | sed -nE '"#
            + #"h;s/^\{"name":"(:[0-9.]+)","pid":([0-9]+),.*/\1\npid:\2/p;"#
            + #"g;s/.*,"application":"([A-Za-z0-9._-]+)",.*/app:\1/p' | sort -u"#
    }
}
