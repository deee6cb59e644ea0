// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct LifecycleStateTests {
    @Test(arguments: anyBusKind())
    func `each verb requests its state, for the target in the agent's form`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, replying: [.uint32(1)])
        let cases: [(arguments: [String], target: String, state: String, freezes: Bool)] = [
            (["foreground", "pid:42"], "pid:42", "foreground", false),
            (["resume", "42"], "pid:42", "foreground", false),
            (["background", ":1.7"], ":1.7", "background", false),
            (["suspend", "app:org.example.É"], "app:org.example.É", "suspended", false),
            (["--freeze", "suspend", "--", "pid:042"], "pid:42", "suspended", true),
        ]
        for (index, expected) in cases.enumerated() {
            let result = try run(productPath("notify-lifecycle"), ["--address", bus.address] + expected.arguments)
            #expect(result.status == 0)
            #expect(result.output == "" && result.errorOutput == "")
            let call = try #require(agent.calls.elements.last)
            #expect(agent.calls.count == index + 1)
            #expect(call.path == "/org/notifybus/Agent1" && call.interface == FakeAgent.name)
            #expect(call.member == "SetState" && call.signature == "ssb")
            let wanted = Wire.body([.string(expected.target), .string(expected.state), .bool(expected.freezes)])
            #expect(call.body == wanted)
        }
    }

    @Test(arguments: anyBusKind())
    func `release names the targets, or none for everyone`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, replying: [.uint32(2)])
        let cases = [(["app:x", "42"], ["app:x", "pid:42"]), ([], [""])]
        for (arguments, targets) in cases {
            let result = try run(
                productPath("notify-lifecycle"),
                ["--address", bus.address, "-v", "release"] + arguments
            )
            #expect(result.status == 0)
            let calls = agent.calls.elements.suffix(targets.count)
            #expect(calls.map(\.member) == targets.map { _ in "Release" } && calls.map(\.string) == targets)
        }
        #expect(try bus.lifecycle("-v", "release").errorOutput == "notify-lifecycle: everyone: released, 2 observers\n")
    }

    /// Its observers still count as suspended for 2 seconds, and tell the next agent so.
    @Test(arguments: anyBusKind())
    func `what continues a frozen program without an agent also changes its state with the next one`(
        kind: BusKind
    ) throws {
        let script = """
            export XDG_RUNTIME_DIR=$1
            observes() { notify-lifecycle list -q | grep -q "^$waiting "; }
            notify-agent & agent=$!
            until notify-lifecycle status >/dev/null; do sleep 0.02; done
            notify-wait -q -f com.example.x & waiting=$!
            until observes; do sleep 0.02; done
            notify-lifecycle suspend --freeze $waiting || exit
            # Together with what would let the program continue.
            kill -STOP $agent
            while grep -q "^State:.[^T]" /proc/$agent/task/*/status; do sleep 0.01; done
            kill -KILL $(cat /proc/$agent/task/*/children) $agent
            notify-lifecycle foreground $waiting & command=$!
            while grep -q "^State:.T" /proc/$waiting/status; do sleep 0.01; done
            notify-agent & agent=$!
            wait $command && echo changed
            until observes; do sleep 0.02; done
            notify-lifecycle list --json
            kill $agent $waiting
            wait
            """
        var outputs: [String] = []
        // A busy machine may need longer than that.
        for _ in 0..<3 {
            let bus = try PrivateBus(kind)
            let folder = try TemporaryFolder()
            let environment = try bus.environment().merging(withoutDesktop) { $1 }
            let running = try start("bash", ["-c", script, "bash", folder.path], environment: environment)
            let result = try running.wait(timeout: .patience)
            let lines = result.lines
            if lines.count == 2, lines[0] == "changed", lines[1].contains(#""state":"foreground""#) { return }
            outputs.append(result.output + result.errorOutput)
        }
        Issue.record("\(outputs)")
    }

    @Test(arguments: anyBusKind())
    func `a verb returns when the agent says that the change is in force, and not before`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let release = Counter()
        let agent = try FakeAgent(on: bus) { _ in
            _ = release.wait(for: 1)
            return .reply([.uint32(1)])
        }
        let command = try bus.startLifecycle("background", "pid:1")
        try #require(agent.calls.wait(forCount: 1))
        #expect(!waitUntil(timeout: .milliseconds(100)) { processState(command.pid) == nil })
        release.add()
        #expect(try command.wait().status == 0)
    }

    @Test(arguments: anyBusKind())
    func `several targets are changed in turn, and an error with one does not stop the others`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus) { call in
            switch call.string {
            case "pid:1": .error("org.notifybus.Error.NoSuchTarget", "Nobody.")
            case "pid:2": .error("org.freedesktop.DBus.Error.AccessDenied", "Not yours.")
            case "pid:3": .error("org.notifybus.Error.TimedOut", "It sleeps.")
            case "pid:4": .error("org.example.Unheard", "Oh.")
            case "pid:5": .reply([.string("what?")])
            default: .reply([.uint32(call.string == "app:x" ? 1 : 3)])
            }
        }
        let result = try bus.lifecycle("background", "-v", "1", "app:x", "2", "3", "4", "5", ":1.6")
        #expect(result.status == 1)
        #expect(result.output == "")
        let changes = agent.calls.elements.filter { $0.member == "SetState" }
        #expect(changes.map(\.string) == ["pid:1", "app:x", "pid:2", "pid:3", "pid:4", "pid:5", ":1.6"])
        let lines = result.errorOutput.split(separator: "\n")
        try #require(lines.count == 7)
        #expect(lines[0].hasPrefix("notify-lifecycle: no observer matches pid:1"))
        #expect(lines[1] == "notify-lifecycle: app:x: background, 1 observer")
        #expect(lines[2] == "notify-lifecycle: the state of pid:2 is unchanged: Not yours.")
        #expect(lines[3].contains("pid:3 did not respond in time"))
        #expect(lines[4].contains("pid:4") && lines[4].contains("Oh."))
        #expect(lines[5].contains("pid:5") && lines[5].contains("is invalid"))
        #expect(lines[6] == "notify-lifecycle: :1.6: background, 3 observers")
    }

    @Test(arguments: anyBusKind())
    func `the exit status tells whether a change was refused or late`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus) { call in
            switch call.string {
            case "pid:1": .error("org.notifybus.Error.NoSuchTarget", "Nobody.")
            case "pid:2": .error("org.freedesktop.DBus.Error.AccessDenied", "Not yours.")
            default: .error("org.notifybus.Error.TimedOut", "It sleeps.")
            }
        }
        #expect(try bus.lifecycle("resume", "1").status == 1)
        #expect(try bus.lifecycle("resume", "2").status == 1)
        #expect(try bus.lifecycle("resume", "3", "4").status == 2)
        #expect(try bus.lifecycle("resume", "3", "1").status == 1)
        #expect(agent.calls.elements.filter { $0.member == "SetState" }.count == 6)
    }

    @Test(arguments: anyBusKind())
    func `if the agent does not answer, the command exits with 2 and asks nothing more`(kind: BusKind) throws {
        for arguments in [["background", "1", "2"], ["list"], ["status"]] {
            // On a busy machine, its time is over before it has asked. Then a call that comes late is not counted.
            let (result, calls) = try inTime {
                let bus = try PrivateBus(kind)
                let agent = try FakeAgent(on: bus)
                let result = try run(
                    productPath("notify-lifecycle"),
                    ["--address", bus.address, "-t", "500ms"] + arguments
                )
                return (result, agent.calls.count)
            } unless: {
                $0.1 == 0
            }
            #expect(result.status == 2)
            #expect(result.output == "")
            #expect(result.errorOutput == "notify-lifecycle: the agent did not answer in time\n")
            #expect(calls == 1)
        }
    }

    @Test(arguments: anyBusKind())
    func `a change that meets a takeover is made by the new agent, once that knows the observer`(kind: BusKind) throws {
        // A takeover that takes longer than two seconds is none.
        let (result, calls) = try inTime {
            let bus = try PrivateBus(kind)
            let count = Counter()
            let agent = try FakeAgent(on: bus) { _ in
                count.add()
                return switch count.value {
                case 1: .error("org.freedesktop.DBus.Error.NoReply", "Another agent has taken over.")
                case 2: .error("org.notifybus.Error.NoSuchTarget", "Nobody.")
                default: .reply([.uint32(1)])
                }
            }
            return (try bus.lifecycle("resume", "pid:4711"), agent.calls.count)
        } unless: {
            $0.0.status != 0
        }
        #expect(result.status == 0 && calls == 3, "\(result.errorOutput)")
    }

    @Test(arguments: anyBusKind())
    func `if the agent dies during the call and none takes over, or the bus dies, that is reported`(kind: BusKind)
        throws
    {
        let bus = try PrivateBus(kind)
        let mortal = try FakeAgent(on: bus) { _ in .death }
        let result = try bus.lifecycle("background", "1", "2")
        #expect(result.status == 69)
        #expect(result.errorOutput == "notify-lifecycle: the agent went away before it answered\n")
        #expect(mortal.calls.count == 1)

        let agent = try FakeAgent(on: bus)
        let command = try bus.startLifecycle("background", "1", "2")
        try #require(agent.calls.wait(forCount: 1))
        bus.kill()
        let orphan = try command.wait()
        #expect(orphan.status == 69)
        #expect(orphan.errorOutput == "notify-lifecycle: the bus went away before the agent answered\n")
    }
}
