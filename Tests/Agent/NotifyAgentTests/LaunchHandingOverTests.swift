// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// What is posted to start programs while agents take over from each other.
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

    /// Each agent has got what the one before it knew.
    private func expectAllTookOver(_ session: UserSession) throws {
        let count = try session.shell("cat \"$HOME\"/agent*log | grep -c 'took over'; echo $replacements").split(
            separator: "\n"
        )
        #expect(count.first == count.last)
        #expect(try session.shell("cat \"$HOME\"/agent*log | grep -c mark=missed || true") == "0\n")
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
        try expectAllTookOver(session)
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
        try expectAllTookOver(session)
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

    /// A service manager may have more to do than to start a program. It refuses a call whose caller has left the bus by then.
    @Test(arguments: busKinds)
    func `a start that the service manager has yet to take is not lost with the agent that has asked for it`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        let names = ["e1", "e2", "e3", "e4", "unit"].map { "com.example.\($0)" }
        for name in names.dropLast() {
            let command = "sh -c 'echo $NOTIFY_NAME >>$HOME/runs'"
            try session.entry(String(name.dropFirst(12)), "name = \(name)", "run = \(command)")
        }
        try session.job("echo com.example.unit >>$HOME/runs")
        try session.entry("unit", "name = com.example.unit", "start = job.service")
        try session.startAgent()
        // One that takes over goes away before it has.
        try stopManager(session)
        try session.shell("notify-post com.example.e1 com.example.unit")
        for entry in ["e1", "unit"] { try session.waitFor("starting", of: entry) }
        try session.shell("notify-agent --replace >\"$HOME/agent.1.log\" 2>&1 & next[1]=$!")
        try session.until("grep -q 'waiting for the service manager' \"$HOME/agent.log\"")
        try session.shell("notify-post com.example.e2")
        #expect(try session.field("state", of: "e2") == "idle" && session.field("due", of: "e2") == "1")
        try session.shell("kill -KILL ${next[1]}; wait ${next[1]} || true")
        try session.waitFor("starting", of: "e2")
        #expect(try session.shell("grep -c staying \"$HOME/agent.log\"") == "1\n")
        try session.shell("kill -CONT \"$manager\"")
        try session.until("has runs 3")
        for entry in ["e1", "e2", "unit"] { try session.waitFor("idle", of: entry) }
        // Of three at once, the last one that is left takes over.
        try stopManager(session)
        try session.shell("notify-post com.example.e3")
        try session.waitFor("starting", of: "e3")
        try session.shell("notify-agent --replace >\"$HOME/agent.2.log\" 2>&1 & next[2]=$!")
        try session.until("(($(grep -c 'waiting for the service manager' \"$HOME/agent.log\") == 2))")
        for number in [3, 4] {
            try session.shell("notify-agent --replace >\"$HOME/agent.\(number).log\" 2>&1 & next[\(number)]=$!")
            try session.until("(($(grep -c 'waits to take over, too' \"$HOME/agent.log\") == \(number - 2)))")
        }
        try session.shell("kill -KILL ${next[2]} ${next[3]}; wait ${next[2]} ${next[3]} || true")
        try session.shell("notify-post com.example.e4; kill -CONT \"$manager\"")
        try session.until("grep -q 'took over' \"$HOME/agent.4.log\" && grep -q ready \"$HOME/agent.4.log\"")
        try session.until("has runs 5")
        try session.until(
            "notify-lifecycle launches -q >\"$HOME/list\" && [[ $(grep -c ' idle ' \"$HOME/list\") == 5 ]]"
        )
        #expect(try session.shell("sort \"$HOME/runs\"") == names.map { $0 + "\n" }.joined())
        try session.shell("kill ${next[4]} && wait ${next[4]} || true")
    }

    /// With the usual limit: this takes as long. A person may want to end the old agent meanwhile.
    @Test(arguments: anyBusKind())
    func `what is due is handed over, although the service manager answers too late and the agent is to end`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        for entry in ["late", "due"] {
            let command = "sh -c 'echo $NOTIFY_NAME >>$HOME/runs'"
            try session.entry(entry, "name = com.example.\(entry)", "run = \(command)")
        }
        try session.startAgent()
        try stopManager(session)
        try session.shell("notify-post com.example.late")
        try session.waitFor("starting", of: "late")
        try session.shell("notify-agent --replace >\"$HOME/agent.1.log\" 2>&1 & next=$!")
        try session.until("grep -q 'waiting for the service manager' \"$HOME/agent.log\"")
        try session.shell("notify-post com.example.due; kill -TERM $agent")
        try session.until("grep -q 'took over' \"$HOME/agent.1.log\" && grep -q ready \"$HOME/agent.1.log\"")
        #expect(try session.shell("grep -c 'late was not started: .* within 25 s' \"$HOME/agent.log\"") == "1\n")
        try session.shell("kill -CONT \"$manager\"")
        try session.until("grep -q due \"$HOME/runs\"")
        try session.waitFor("idle", of: "due")
        #expect(try session.shell("grep -c due \"$HOME/runs\"") == "1\n")
        try session.shell("kill $next && wait $next || true")
    }

    /// Stops the service manager of a session, which then answers nothing.
    private func stopManager(_ session: UserSession) throws {
        let bus = "busctl --user call org.freedesktop.DBus / org.freedesktop.DBus"
        try session.shell("manager=$(\(bus) GetConnectionUnixProcessID s org.freedesktop.systemd1)")
        try session.shell("manager=${manager#u } && kill -STOP \"$manager\"")
    }

    /// When systemd is updated, it has the managers of all users execute the new version.
    @Test(arguments: busKinds)
    func `a service manager that is executed again finds what was due, and what was posted meanwhile`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        // systemd 252 reads a unit that it starts once more, and then takes each dollar sign for two characters.
        func command(_ entry: String) -> String { "run = sh -c 'echo \(entry) >>\(session.home)/runs'" }
        for entry in ["e1", "e2"] { try session.entry(entry, "name = com.example.\(entry)", command(entry)) }
        try session.entry("waiting", "name = com.example.waiting", command("waiting"), "when = com.example.gate")
        // It runs all the time.
        try session.unit("busy.service", "[Service]", "ExecStart=/bin/sh -c 'echo busy >>$HOME/runs; exec sleep 1000'")
        try session.entry("busy", "name = com.example.busy", "start = busy.service", "on-busy = restart")
        try session.startAgent()
        try session.shell("notify-post com.example.busy")
        try session.until("has runs 1")
        try session.waitFor("running", of: "busy")
        for round in 1...3 {
            try session.shell("notify-post com.example.waiting")
            try session.shell(
                """
                systemctl --user daemon-reexec & systemctl=$!
                notify-post com.example.e1 com.example.busy
                wait "$systemctl"
                notify-post com.example.e2
                notify-state set com.example.gate 1
                """
            )
            try session.until("has runs \(1 + 4 * round)", orSay: "sort \"$HOME/runs\" | uniq -c")
            try session.shell("notify-state set com.example.gate 0")
            for entry in ["e1", "e2", "waiting"] { try session.waitFor("idle", of: entry) }
            try session.waitFor("running", of: "busy")
        }
        #expect(
            try session.shell("sort \"$HOME/runs\" | uniq -c | tr -s ' '")
                == " 4 busy\n 3 e1\n 3 e2\n 3 waiting\n"
        )
    }
}
