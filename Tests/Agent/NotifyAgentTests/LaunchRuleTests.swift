// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// The rules of an entry one by one, with systemd's user manager.
@Suite(.disabled(if: UserSession.obstacle != nil, "a session of systemd's takes root, systemd and control groups"))
struct LaunchRuleTests {
    @Test(arguments: anyBusKind())
    func `with settle a burst is one start, and with drop what comes while the program runs starts nothing`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        try session.entry(
            "settling",
            "prefix = com.example.burst",
            "run = sh -c 'echo $NOTIFY_NAME >>$HOME/settled'",
            "settle = 3s"
        )
        try session.shell("mkfifo \"$HOME/gate\"")
        try session.job("echo run >>$HOME/runs; read line <$HOME/gate || true")
        try session.entry("dropping", "name = com.example.drop", "start = job.service", "on-busy = drop")
        try session.startAgent()
        try session.shell("notify-post com.example.burst.a com.example.burst.b com.example.burst.a")
        try session.until("grep -q . \"$HOME/settled\"")
        try session.waitFor("idle", of: "settling")
        #expect(try session.field("starts", of: "settling") == "1")
        #expect(try session.shell("cat \"$HOME/settled\"") == "com.example.burst.a\n")

        for round in 1...2 {
            try session.shell("notify-post com.example.drop")
            try session.until("has runs \(round)")
            // The agent has heard it by the time the command returns.
            try session.shell("notify-post com.example.drop; notify-post com.example.drop")
            try session.shell("echo >\"$HOME/gate\"")
            try session.waitFor("idle", of: "dropping")
            #expect(try session.lines("runs") == round)
            #expect(try session.field("starts", of: "dropping") == "\(round)")
        }
    }

    @Test(arguments: anyBusKind())
    func `two entries for one unit share a run, and both see its end`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.shell("mkfifo \"$HOME/gate\"")
        try session.job("echo run >>$HOME/runs; read line <$HOME/gate || true")
        for name in ["one", "two"] { try session.entry(name, "name = com.example.go", "start = job.service") }
        try session.startAgent()
        try session.shell("notify-post com.example.go")
        try session.until("[[ $(notify-lifecycle launches -q | grep -c ' starting ') == 2 ]]")
        try session.shell("echo >\"$HOME/gate\"")
        try session.until("[[ $(notify-lifecycle launches -q | grep -c ' idle .* 1 .* done') == 2 ]]")
        #expect(try session.lines("runs") == 1)
    }

    /// systemd does this when it can't put a process into a control group, because it is still removing that of the
    /// last run.
    @Test(arguments: anyBusKind())
    func `a start that fails because of systemd is tried once more`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.job("echo run >>$HOME/runs; exit 219")
        try session.entry("job", "name = com.example.go", "start = job.service")
        try session.startAgent()
        // systemd may spoil the second one as well; an agent that never retries would fail each time.
        let isRepeated = try waitUntil {
            try session.shell("rm -f \"$HOME/runs\"; notify-post com.example.go")
            try session.until("notify-lifecycle launches -q | grep -q \"idle .* 'failed'\"")
            return try session.lines("runs") == 2
        }
        #expect(isRepeated)
        #expect(try session.field("failures", of: "job") == session.field("starts", of: "job"))
    }

    @Test(arguments: anyBusKind())
    func `a system event starts a program like any other post`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.entry(
            "mounts",
            "name = com.apple.system.kernel.mount",
            "run = sh -c 'echo $NOTIFY_NAME >>$HOME/runs'"
        )
        try session.startAgent()
        try session.until("notify-lifecycle status | grep -q 'com.apple.system.kernel.mount  *live'")
        try session.shell("mkdir \"$HOME/nas\"; mount -t tmpfs nas \"$HOME/nas\"")
        try session.until("grep -qx com.apple.system.kernel.mount \"$HOME/runs\"")
        try session.shell("umount \"$HOME/nas\"")
    }

    @Test(arguments: anyBusKind())
    func `the first file counts at once, even if its folders are new, and so does one in another new folder`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        try session.shell("rm -r \"$HOME/.config/notifybus\"")
        try session.startAgent()
        for round in 1...2 {
            // Other files beside it that come and go don't matter.
            try session.shell("touch \"$HOME/.config/other\"; mkdir \"$HOME/.config/notifybus\"")
            try session.shell("mkdir \"$HOME/.config/notifybus/launch.d\"")
            try session.entry("job", "name = com.example.go", "run = sh -c 'echo run >>$HOME/runs'")
            try session.waitFor("idle", of: "job")
            try session.shell("notify-post com.example.go")
            try session.until("has runs \(round)")
            try session.waitFor("idle", of: "job")
            try session.shell("rm -r \"$HOME/.config/notifybus\"")
            try session.until("[[ $(notify-lifecycle launches -q) == '' ]]")
        }
    }

    @Test(arguments: anyBusKind())
    func `an entry that comes after the last one has gone finds what runs`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try session.unit("busy.service", "[Service]", "ExecStart=/bin/sh -c 'echo run >>$HOME/runs; exec sleep 1000'")
        try session.startAgent()
        for _ in 1...2 {
            try session.entry("unit", "name = com.example.unit", "start = busy.service")
            let command = "sh -c 'echo run >>$HOME/runs; sleep 1000'"
            try session.entry("command", "name = com.example.command", "run = \(command)")
            try session.until("(($(notify-lifecycle launches -q | grep -cE ' (idle|running) ') == 2))")
            try session.shell("notify-post com.example.unit com.example.command")
            for entry in ["unit", "command"] { try session.waitFor("running", of: entry) }
            try session.until("has runs 2")
            try session.shell("rm \"$HOME\"/.config/notifybus/launch.d/*")
            try session.until("[[ $(notify-lifecycle launches -q) == '' ]]")
        }
        try session.entry("unit", "name = com.example.unit", "start = busy.service", "on-busy = restart")
        try session.waitFor("running", of: "unit")
        try session.shell("notify-post com.example.unit")
        try session.until("has runs 3")
    }

    @Test(arguments: anyBusKind())
    func `other units and other files wake nobody, and the last entry frees everything when it goes`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        try session.job("echo run >>$HOME/runs")
        try session.unit("other.service", "[Service]", "Type=oneshot", "ExecStart=true")
        try session.startAgent()
        let threads = try session.shell("ls /proc/$agent/task | wc -l")
        try session.entry("unit", "name = com.example.go", "start = job.service")
        try session.entry("command", "prefix = com.example.run", "run = true")
        try session.entry("activation", "name = com.example.go", "activate = com.example.Nobody")
        try session.until("[[ $(notify-lifecycle launches -q | grep -c ' idle ') == 3 ]]")
        try session.shell("notify-post com.example.go com.example.run.a")
        try session.until("[[ $(notify-lifecycle launches -q | grep -c ' idle .* 1 ') == 3 ]]")
        let others = "systemctl --user start other.service other.service; touch \"$HOME/.config/other\""
        #expect(try session.agentSleeps(through: others))
        try session.shell("rm \"$HOME\"/.config/notifybus/launch.d/*")
        try session.until("! busctl --user list | grep -q org.notifybus.Launch1")
        let own = "systemctl --user start job.service; notify-post com.example.go com.example.run.a"
        #expect(try session.agentSleeps(through: "\(others); \(own)"))
        // There may have been one more when the agent had just started.
        try session.until("[[ $(ls /proc/$agent/task | wc -l) -le \(threads.filter(\.isNumber)) ]]")
    }

    /// systemd writes a transient unit to a file, which it reads again with each `daemon-reload`.
    @Test(arguments: anyBusKind())
    func `no name becomes a line of a unit, whatever it contains, and the program gets it as it is`(
        kind: BusKind
    ) throws {
        let session = try UserSession(kind)
        try session.shell(
            #"""
            printf '#!/bin/sh\nprintf "%%s\\n" "$NOTIFY_NAME" >>"$HOME/runs"; exec sleep 1000\n' >"$HOME/program"
            chmod +x "$HOME/program"
            """#
        )
        try session.entry("any", "prefix = com.example", "run = \(session.home)/program", "from = anyone")
        try session.startAgent()
        let units = "'notifybus-launch-*'"
        try session.shell(
            #"""
            notify-post $'com.example.a\n[Service]\nExecStopPost=/bin/touch '"$HOME"/executed
            notify-post $'com.example.a\e[2J' $'com.example.a\x7f' $'com.example.a\u0085ExecStopPost=/bin/true'
            """#
        )
        // The agent has heard them before it says this.
        #expect(try session.field("starts", of: "any") == "0")
        try session.shell("systemctl --user daemon-reload; systemctl --user stop \(units)")
        #expect(try session.shell("ls \"$HOME\" | grep -c executed || true") == "0\n")

        let name = #"com.example."q" 'x' %n %h $HOME ${PATH} \n \x41 ;#é= \"#
        try session.shell("notify-post \"$(cat <<'END'\n\(name)\nEND\n)\"")
        try session.waitFor("running", of: "any")
        try session.until("grep -q . \"$HOME/runs\"")
        let unit = "$(systemctl --user list-units --plain --no-legend \(units) | cut -d' ' -f1)"
        let show = "systemctl --user show --property=Environment,Description,ExecStopPost,SyslogIdentifier \(unit)"
        let before = try session.shell(show)
        #expect(before.contains("Description=Started by NotifyBus for a posted name\n"))
        #expect(before.contains("SyslogIdentifier=any\n") && !before.contains("ExecStopPost"))
        // systemd reads the same again, and runs the same then.
        try session.shell("systemctl --user daemon-reload")
        #expect(try session.shell(show) == before)
        try session.shell("systemctl --user restart \(unit)")
        try session.until("has runs 2")
        #expect(try session.shell("cat \"$HOME/runs\"") == "\(name)\n\(name)\n")
        #expect(try session.field("starts", of: "any") == "1")
    }

    /// A second bus without a service manager, which starts the services of a folder.
    private func startPlainBus(_ session: UserSession, type: String, socket: String) throws {
        try session.shell(
            """
            cat >"$HOME/\(socket).conf" <<END
            <busconfig>\(type)<listen>unix:path=$HOME/\(socket)</listen><servicedir>$HOME/services</servicedir>
            <policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
            <allow receive_sender="*"/></policy></busconfig>
            END
            dbus-daemon --config-file="$HOME/\(socket).conf" --nofork --nopidfile >"$HOME/\(socket).log" 2>&1 &
            """
        )
        try session.until("[[ -S $HOME/\(socket) ]]")
    }

    @Test(.enabled(if: geteuid() == 0))
    func `on the system bus root's posts count, and other users' only if an entry says so`() throws {
        let session = try UserSession(.daemon)
        try session.shell(
            """
            mkdir -p "$HOME/services" /run/notifybus/launch.d
            chmod 755 "$HOME"
            for who in root anyone; do
              printf '[D-BUS Service]\\nName=com.example.%s\\nExec=/bin/sh -c "echo run >>%s/%s; exit 1"\\nUser=root\\n' \
                $who "$HOME" $who >"$HOME/services/com.example.$who.service"
            done
            export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$HOME/system
            printf 'name = com.example.go\\nactivate = com.example.root\\n' >/run/notifybus/launch.d/root.conf
            printf 'name = com.example.go\\nactivate = com.example.anyone\\nfrom = anyone\\n' >/run/notifybus/launch.d/anyone.conf
            """
        )
        try startPlainBus(session, type: "", socket: "system")
        try session.shell("notify-agent --system >\"$HOME/agent.log\" 2>&1 & agent=$!")
        let list = "notify-lifecycle launches --system -q"
        try session.until("[[ $(\(list) | grep -c ' idle ') == 2 ]]")
        try session.shell(
            "setpriv --reuid=nobody --regid=nogroup --clear-groups -- \"$(command -v notify-post)\" --system com.example.go"
        )
        try session.until("has anyone 1")
        try session.until("[[ $(\(list) | grep -c ' idle ') == 2 ]]")
        #expect(try session.lines("root") == 0)
        try session.shell("notify-post --system com.example.go")
        try session.until("has root 1 && has anyone 2")
        try session.shell("kill $agent")
    }

    @Test
    func `without a service manager units and commands are off and say why, and bus activation works`() throws {
        let session = try UserSession(.daemon)
        try session.entry("unit", "name = com.example.go", "start = job.service")
        try session.entry("command", "name = com.example.go", "run = sh -c 'echo run >>$HOME/commands'")
        try session.entry("service", "name = com.example.go", "activate = com.example.Service")
        try session.shell(
            """
            mkdir -p "$HOME/services"
            printf '[D-BUS Service]\\nName=com.example.Service\\nExec=/bin/sh -c "echo run >>%s/runs; exit 1"\\n' "$HOME" \
              >"$HOME/services/com.example.Service.service"
            export DBUS_SESSION_BUS_ADDRESS=unix:path=$HOME/plain
            """
        )
        try startPlainBus(session, type: "<type>session</type>", socket: "plain")
        try session.startAgent()
        for entry in ["unit", "command"] {
            #expect(try session.field("state", of: entry) == "off")
            #expect(try session.field("reason", of: entry).contains("no service manager"))
        }
        try session.shell("notify-post com.example.go")
        try session.until("grep -q run \"$HOME/runs\"")
        try session.waitFor("idle", of: "service")
        #expect(try session.field("failures", of: "service") == "1")
        for entry in ["unit", "command"] { #expect(try session.field("starts", of: entry) == "0") }
    }
}
