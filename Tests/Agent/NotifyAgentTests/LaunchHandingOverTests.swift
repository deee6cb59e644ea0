// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// What is posted to start programs while agents take over from each other.
///
/// One at a time: an agent that has to wait for the machine for more than a second hands over without what is under way.
@Suite(.serialized, .enabled(if: UserSession.obstacle == nil, "\(UserSession.obstacle ?? "")"))
struct LaunchHandingOverTests {
    /// How an agent takes over.
    enum Way: String, CaseIterable {
        case replace, restart
    }

    /// Starts an agent, and defines a function of the shell that has another one take over from it.
    private func startAgent(_ session: UserSession, _ way: Way) throws {
        try session.agentUnit()
        try session.shell("replacements=0")
        switch way {
        case .replace:
            try session.startAgent()
            try session.shell(
                """
                takeOver() {
                  local log="$HOME/agent.$((++replacements)).log"
                  notify-agent --replace >"$log" 2>&1 &
                  until grep -q ready "$log"; do pause 0.005; done
                }
                """
            )
        case .restart:
            // It answers once it has taken over.
            try session.shell(
                """
                takeOver() {
                  ((++replacements))
                  systemctl --user restart notify-agent
                  notify-lifecycle launches -q >/dev/null
                }
                """
            )
            try session.shell("systemctl --user start notify-agent")
        }
        try session.until("notify-lifecycle launches -q >\"$HOME/list\" && ! grep -q waking \"$HOME/list\"")
    }

    /// Whether each agent got what the one before it knew. Otherwise the machine was too busy for it to wait any longer.
    private func allTookOver(_ session: UserSession) throws -> Bool {
        let count = try session.shell("cat \"$HOME\"/agent*log | grep -c 'took over'; echo $replacements").split(
            separator: "\n"
        )
        if count.first != count.last { print("This machine is too busy to replace an agent in time.") }
        return count.first == count.last
    }

    private func endAgent(_ session: UserSession, _ way: Way) throws {
        // The session waits for what its shell has started.
        if way == .replace { try session.shell("kill $! && wait $! || true") }
    }

    @Test(arguments: busKinds, Way.allCases)
    func `what is due is started once, however often agents take over from each other`(kind: BusKind, way: Way) throws {
        let session = try UserSession(kind)
        // One waits for more posts, one for its program, and one for its limit.
        try session.entry(
            "settling",
            "name = com.example.settling",
            "run = sh -c 'echo $NOTIFY_NAME >>$HOME/settling'",
            "settle = 2s"
        )
        try session.unit(
            "busy.service",
            "[Service]",
            "Type=oneshot",
            "ExecStart=/bin/sh -c 'echo run >>$HOME/busy; until [ -e $HOME/finish ]; do sleep 0.05; done'"
        )
        try session.entry("busy", "name = com.example.busy", "start = busy.service")
        try session.entry(
            "limited",
            "name = com.example.limited",
            "run = sh -c 'echo run >>$HOME/limited'",
            "limit = 1/10s"
        )
        try startAgent(session, way)
        try session.shell("notify-post com.example.busy com.example.limited")
        try session.until("has busy 1 && has limited 1")
        try session.waitFor("idle", of: "limited")
        try session.shell("notify-post com.example.busy com.example.limited com.example.settling")
        try session.waitFor("limited", of: "limited")
        try session.shell("takeOver; takeOver; takeOver")
        guard try allTookOver(session) else { return try endAgent(session, way) }
        #expect(try session.lines("busy") == 1)
        try session.until("has settling 1 && has limited 2")
        try session.shell(": >\"$HOME/finish\"")
        try session.until("has busy 2")
        for entry in ["settling", "busy"] { try session.waitFor("idle", of: entry) }
        try session.until("notify-lifecycle launches -q | grep '^limited ' | grep -q -e ' idle ' -e ' limited '")
        #expect(try session.field("due", of: "limited") == "0" && session.field("due", of: "busy") == "0")
        #expect(try session.shell("cat \"$HOME/settling\"") == "com.example.settling\n")
        #expect(try session.lines("limited") == 2 && session.lines("busy") == 2)
        try endAgent(session, way)
    }

    /// Each post has a name, a sender and an entry of its own, so that each start has one cause.
    @Test(arguments: busKinds, Way.allCases)
    func `each post before, while and after agents take over starts its program once`(kind: BusKind, way: Way) throws {
        let session = try UserSession(kind)
        let count = isLongRun ? 600 : 60
        for number in 0..<count {
            // Nothing runs that is needed to tell them apart.
            try session.entry(
                "e\(number)",
                "name = com.example.e\(number)",
                "run = /bin/sh -c 'echo \(number) >>$HOME/runs'",
                "from = \(number % 3 == 0 ? "anyone" : "user")"
            )
        }
        try startAgent(session, way)
        try session.shell(
            """
            (for ((number = 0; number < \(count); number++)); do notify-post com.example.e$number; pause 0.01; done; touch "$HOME/posted") & posts=$!
            while [[ ! -e "$HOME/posted" ]]; do takeOver; done
            takeOver
            wait $posts
            """,
            timeout: .seconds(600)
        )
        guard try allTookOver(session) else { return try endAgent(session, way) }
        try session.until(
            "lines runs && ((lines >= \(count)))",
            orSay: #"for ((i = 0; i < \#(count); i++)); do grep -qx $i "$HOME/runs" || echo "not started: e$i"; done"#
        )
        // Entries that are idle have been started as often as they ever will be.
        try session.until(
            "notify-lifecycle launches -q >\"$HOME/list\" && [[ $(grep -c ' idle ' \"$HOME/list\") == \(count) ]]"
        )
        let wrong = try session.shell("sort -n \"$HOME/runs\" | uniq -c | awk '$1 != 1'")
        #expect(wrong.isEmpty, "started more than once: \(wrong)")
        #expect(try session.shell("sort -un \"$HOME/runs\" | wc -l") == "\(count)\n")
        try endAgent(session, way)
    }
}
