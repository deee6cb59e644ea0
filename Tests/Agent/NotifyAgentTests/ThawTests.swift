// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// No process stays stopped, whatever dies: real agents under a real user manager. A socket of this test acts as sway.
@Suite(.disabled(if: UserSession.obstacle != nil, "a session of systemd's takes root, systemd and control groups"))
struct ThawTests {
    /// A session with the agent's own unit, and programs in units.
    private final class Desk {
        let session: UserSession
        let sway: FakeSway
        private var talk: FakeSway.Talk?

        /// - Parameter unit: whether the agent runs in its unit; otherwise the shell has started it.
        init(_ kind: BusKind, unit: Bool = true) throws {
            sway = try FakeSway()
            session = try UserSession(kind)
            try save(
                "[nap]\napps = game\nafter = 10ms\nstate = frozen\n",
                toFile: "\(session.home)/.config/notifybus/nap.conf"
            )
            try session.shell(
                """
                sed 's|@BINDIR@|'"$(dirname "$(command -v notify-agent)")"'|' \
                  '\(packageFolder)/desktop/systemd/user/notify-agent.service.in' \
                  >"$HOME/.config/systemd/user/notify-agent.service"
                systemctl --user daemon-reload
                systemctl --user set-environment SWAYSOCK=\(sway.path) WAYLAND_DISPLAY=wayland-1
                group() { echo "/sys/fs/cgroup$(systemctl --user show -p ControlGroup --value "$1")"; }
                frozen() { grep -q "frozen 1" "$(group "$1")/cgroup.events"; }
                main() { systemctl --user show -p MainPID --value "$1"; }
                state() { read -r _ state _ < <(grep State "/proc/$1/status"); echo "$state"; }
                # The agent has another guard at once, if it can.
                killWithGuard() {
                  kill -STOP "$1"
                  while grep -q "^State:.[^T]" /proc/"$1"/task/*/status; do sleep 0.01; done
                  kill -KILL $(cat /proc/"$1"/task/*/children) "$1"
                  wait "$1" || true
                }
                """
            )
            if unit {
                try session.shell("systemctl --user start notify-agent.service")
            } else {
                try session.startAgent("SWAYSOCK=\(sway.path) WAYLAND_DISPLAY=wayland-1")
            }
        }

        /// Starts an observer in a unit of its own.
        func startObserver(_ unit: String, _ properties: String = "") throws {
            try session.shell(
                """
                systemd-run --user -q --unit=\(unit) \(properties) notify-wait -f com.example.scene
                """
            )
            try session.until("notify-lifecycle list -q | grep -q \"^$(main \(unit)) \"")
        }

        /// Has a program nap that knows nothing of us, and ends only when it can.
        func startNap(_ unit: String = "app-game-1.service", _ properties: String = "") throws {
            let talk = try sway.accept()
            // Without it the agent would not know which program has the focus, and no program would nap.
            self.talk = talk
            try talk.greet(focused: 0)
            let script = "trap \"exit 0\" TERM; while :; do sleep 0.05; done"
            try session.shell(
                "systemd-run --user -q --unit=\(unit) \(properties) bash -c '\(script)'; main \(unit) >$HOME/main"
            )
            let pid = try #require(pid_t(session.shell("cat $HOME/main").filter(\.isNumber)))
            talk.focus(pid, "game")
            try session.until("notify-lifecycle status | grep -q 'sway .*process \(pid)'")
            talk.focus(1, "other")
        }
    }

    /// How long a test waits for something, in seconds.
    private let limit = 5

    @Test(arguments: anyBusKind())
    func `what a person has frozen continues when the agent is killed`(kind: BusKind) throws {
        let desk = try Desk(kind, unit: false)
        try desk.startObserver("app-one-1.service")
        try desk.session.shell("notify-lifecycle suspend --freeze $(main app-one-1.service)")
        try desk.session.until("frozen app-one-1.service")
        try desk.session.shell("kill -KILL $agent; wait $agent || true")
        try desk.session.until("! frozen app-one-1.service", timeout: limit)
    }

    @Test(arguments: anyBusKind())
    func `what is frozen continues when the agent's whole unit is killed`(kind: BusKind) throws {
        let desk = try Desk(kind)
        try desk.startObserver("app-one-1.service")
        try desk.startNap()
        try desk.session.until("frozen app-game-1.service")
        try desk.session.shell("notify-lifecycle suspend --freeze $(main app-one-1.service)")
        try desk.session.until("frozen app-one-1.service")
        // As the kernel does when memory runs out.
        try desk.session.shell("systemctl --user kill -s KILL notify-agent.service")
        for unit in ["one", "game"] { try desk.session.until("! frozen app-\(unit)-1.service", timeout: limit) }
        #expect(try desk.session.shell("ls /run/user/0/notifybus") == "")
    }

    @Test(arguments: anyBusKind())
    func `without an agent a command lets a marked program continue`(kind: BusKind) throws {
        let desk = try Desk(kind, unit: false)
        try desk.startObserver("app-one-1.service")
        try desk.session.shell("notify-lifecycle suspend --freeze $(main app-one-1.service)")
        try desk.session.until("frozen app-one-1.service")
        // No process is left that would thaw it.
        try desk.session.shell("killWithGuard $agent")
        try desk.session.shell("frozen app-one-1.service; ! notify-lifecycle background 1")
        try desk.session.shell("frozen app-one-1.service; notify-lifecycle foreground $(main app-one-1.service)")
        try desk.session.until("! frozen app-one-1.service", timeout: limit)
    }

    @Test(arguments: anyBusKind())
    func `the next agent lets continue what one that was killed with its guard had frozen`(kind: BusKind) throws {
        let desk = try Desk(kind, unit: false)
        try desk.startNap()
        try desk.session.until("frozen app-game-1.service")
        try desk.session.shell("killWithGuard $agent")
        try desk.session.shell("frozen app-game-1.service")
        try desk.session.startAgent()
        try desk.session.until("! frozen app-game-1.service", timeout: limit)
    }

    /// Of a signal by hand systemd knows nothing.
    @Test(arguments: anyBusKind())
    func `a frozen unit stops within a second, and follows a signal`(kind: BusKind) throws {
        let desk = try Desk(kind)
        try desk.startNap()
        try desk.session.until("frozen app-game-1.service")
        try desk.startObserver("app-one-1.service")
        try desk.startObserver("app-two-1.service", "-p Type=exec")
        for unit in ["one", "two"] {
            try desk.session.shell("notify-lifecycle suspend --freeze $(main app-\(unit)-1.service)")
            try desk.session.until("frozen app-\(unit)-1.service")
        }
        let time = "begin=${EPOCHREALTIME/./}; systemctl --user stop app-one-1.service app-game-1.service; "
        let microseconds = try desk.session.shell(time + "echo $((${EPOCHREALTIME/./} - begin))")
        #expect(try #require(Int(microseconds.filter(\.isNumber))) < 1_000_000)
        try desk.session.shell("kill $(main app-two-1.service)")
        try desk.session.until("! systemctl --user is-active app-two-1.service", timeout: limit)
    }

    @Test(arguments: anyBusKind())
    func `a unit with a watchdog is refused with the reason`(kind: BusKind) throws {
        let desk = try Desk(kind)
        try desk.startObserver("app-one-1.service", "-p WatchdogSec=60")
        let text = try desk.session.shell("! notify-lifecycle suspend --freeze $(main app-one-1.service)")
        #expect(text.contains("app-one-1.service has a watchdog (WatchdogSec=)"), "\(text)")
        try desk.session.shell("! frozen app-one-1.service")
        try desk.startNap("app-game-1.service", "-p WatchdogSec=60")
        try desk.session.until("notify-lifecycle status | grep -q '1 program asleep'")
        try desk.session.shell("! frozen app-game-1.service")
    }

    /// An agent that a shell has started which naps.
    @Test(arguments: anyBusKind())
    func `the guard is not stopped with the program that has started the agent`(kind: BusKind) throws {
        let desk = try Desk(kind, unit: false)
        let talk = try desk.sway.accept()
        try talk.greet(focused: 0)
        // The shell's parent would be stopped with it, and no command could run: it must have another one.
        try desk.session.shell("kill $agent; wait $agent || true")
        let again =
            "SWAYSOCK=\(desk.sway.path) WAYLAND_DISPLAY=wayland-1 notify-agent 2>>$HOME/agent.log & echo $! >$HOME/agent"
        try desk.session.shell(
            "setsid sh -c '\(again); sleep 1000' & echo $! >$HOME/parent; until [ -s $HOME/agent ]; do pause 0.02; done"
        )
        let parent = try #require(pid_t(desk.session.shell("cat $HOME/parent").filter(\.isNumber)))
        let next = try desk.sway.accept()
        try next.greet(focused: 0)
        next.focus(parent, "game")
        try desk.session.until("notify-lifecycle status | grep -q 'sway .*process \(parent)'")
        next.focus(1, "other")
        try desk.session.until("[[ $(state \(parent)) == T ]]")
        try desk.session.shell("kill -KILL $(cat $HOME/agent)")
        try desk.session.until("[[ $(state \(parent)) != T ]]", timeout: limit)
    }
}
