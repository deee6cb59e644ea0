// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// `notify-state`, with an agent that runs.
@Suite struct StateTests {
    /// A bus with an agent.
    private final class Scene {
        let bus: PrivateBus
        private let agent: RunningCommand

        init(_ kind: BusKind) throws {
            bus = try PrivateBus(kind)
            agent = try start(productPath("notify-agent"), ["--address", bus.address])
            try agent.waitForErrorOutput(containing: "ready")
        }

        func stopAgent() throws {
            agent.send(signal: SIGSTOP)
            try #require(waitUntil { processState(agent.pid) == "T" })
        }
    }

    private func state(_ scene: Scene, _ arguments: [String]) throws -> CommandResult {
        try scene.bus.run("notify-state", arguments)
    }

    @Test(arguments: anyBusKind())
    func `a state that was set can be read as long as the name has an observer`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let center = scene.bus.makeCenter()
        let observation = try center.addObserver(
            matching: .names(["a", "b"].map { try NotifyName($0) }),
            timeout: .seconds(25)
        ) { _ in }
        for (text, value) in [("7", "7"), ("0x10", "16"), ("18446744073709551615", "18446744073709551615")] {
            let set = try state(scene, ["set", "a", text])
            #expect(set.status == 0 && set.output == "" && set.errorOutput == "")
            #expect(try state(scene, ["a"]).output == value + "\n")
            #expect(try state(scene, ["get", "--", "a"]).output == value + "\n")
        }
        #expect(try state(scene, ["get", "a", "b"]).output == "a\t18446744073709551615\nb\t0\n")
        #expect(try state(scene, ["--json", "b"]).output == #"{"name":"b","state":0}"# + "\n")
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `setting the state of a name without observers is 1 and a sentence`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let result = try state(scene, ["set", "com.example.nobody", "1"])
        #expect(result.status == 1)
        #expect(
            result.errorOutput == "notify-state: No connection observes 'com.example.nobody', so it has no state.\n"
        )
    }

    @Test(arguments: anyBusKind())
    func `--post has those who observe the name look, and they see the new state`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let waiting = try scene.bus.startWaiting(["--format", "%n %s", "a"])
        #expect(try state(scene, ["set", "a", "5", "--post"]).status == 0)
        #expect(try waiting.wait().output == "a 5\n")
    }

    @Test(arguments: anyBusKind())
    func `without an agent reading is 69 and a sentence, and %s is a dash`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for arguments in [["a"], ["set", "a", "1"], ["wait", "a", "--is", "1"], ["watch", "a"]] {
            let result = try bus.run("notify-state", arguments)
            #expect(result.status == 69, "\(arguments)")
            #expect(result.errorOutput.hasPrefix("notify-state: There is no lifecycle agent on this bus"))
        }
        let waiting = try bus.startWaiting(["--format", "%s", "a"])
        try bus.makeCenter().postOnceConnected("a")
        #expect(try waiting.wait().output == "-\n")
    }

    @Test(arguments: anyBusKind())
    func `an agent that does not answer is not said to be absent`(kind: BusKind) throws {
        let scene = try Scene(kind)
        try scene.stopAgent()
        for arguments in [["a"], ["set", "a", "1"]] {
            let result = try inTime {
                try state(scene, arguments)
            } unless: {
                $0.status == 2
            }
            #expect(result.status == 69, "\(arguments)")
            #expect(result.errorOutput.hasPrefix("notify-state: The lifecycle agent did not answer"))
        }
    }

    /// An agent that accepts registrations, and does not answer when it is asked for a state.
    private func agentWithoutStates(on bus: PrivateBus) throws -> FakeAgent {
        try FakeAgent(on: bus, takesDescriptors: true) { call in
            switch call.member {
            case "GetNameState": .silence
            case "Register": .reply([.string("foreground"), .array(element: "s", []), .bool(true)])
            default: .reply([])
            }
        }
    }

    @Test(arguments: anyBusKind())
    func `an agent that does not answer notify-wait is asked for one state, not for each`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try agentWithoutStates(on: bus)
        let names = (1...12).map { "com.example.\($0)" }
        let waiting = try bus.startWaiting(["-n12", "--format", "%n %s", "*"])
        let center = bus.makeCenter()
        for name in names { try center.postOnceConnected(NotifyName(name)) }
        #expect(try waiting.wait().lines == names.map { $0 + " -" })
        // A second one after a while.
        let questions = agent.calls.elements.filter { $0.member == "GetNameState" }
        #expect((1...2).contains(questions.count), "\(questions.count)")
    }

    @Test(arguments: anyBusKind())
    func `a signal waits for one state at most, and so does the output`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try inTime {
            let agent = try agentWithoutStates(on: bus)
            let waiting = try bus.startWaiting(["-f", "--format", "%n %s", "*"])
            let center = bus.makeCenter()
            for number in 1...12 { try center.postOnceConnected(NotifyName("com.example.\(number)")) }
            try #require(agent.calls.wait { $0.contains { $0.member == "GetNameState" } })
            waiting.send(signal: SIGTERM)
            defer { try? agent.die() }
            return try waiting.wait()
        } unless: {
            $0.lines.count > 1
        }
        #expect(result.status == 143)
        #expect(result.lines == ["com.example.1 -"])
    }

    @Test(arguments: anyBusKind())
    func `what came in time is printed, though the agent has used up the time`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try agentWithoutStates(on: bus)
        let names = (1...3).map { "com.example.\($0)" }
        for command in [[], ["--", "true"]] {
            let result = try inTime {
                let waiting = try bus.startWaiting(["-f", "-t", "500ms", "--format", "%n %s", "*"] + command)
                let center = bus.makeCenter()
                for name in names { try center.postOnceConnected(NotifyName(name)) }
                return try waiting.wait()
            } unless: {
                $0.lines.count < 3
            }
            #expect(result.status == 2)
            #expect(result.lines == names.map { $0 + " -" })
        }
        #expect(agent.calls.elements.contains { $0.member == "GetNameState" })
    }

    @Test(arguments: anyBusKind(), [true, false])
    func `neither a signal nor the timeout waits for the states of a whole burst`(kind: BusKind, isSignal: Bool) throws
    {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, takesDescriptors: true) { call in
            switch call.member {
            case "GetNameState":
                // All of them would take five seconds.
                _ = poll(nil, 0, 10)
                return .reply([.uint64(7)])
            case "Register": return .reply([.string("foreground"), .array(element: "s", []), .bool(true)])
            default: return .reply([])
            }
        }
        let names = (1...500).map { "com.example.\($0)" }
        var rounds = 0
        let result = try inTime {
            rounds += 1
            let timeout = isSignal ? [] : ["-t", "1500ms"]
            let waiting = try bus.startWaiting(["-f", "--settle", "500ms", "--format", "%n %s", "*"] + timeout)
            let center = bus.makeCenter()
            for name in names { try center.postOnceConnected(NotifyName(name)) }
            if isSignal {
                try #require(agent.calls.wait { $0.contains { $0.member == "GetNameState" } })
                waiting.send(signal: SIGTERM)
            }
            return try waiting.wait()
        } unless: {
            !isSignal && $0.lines.count < names.count
        }
        #expect(result.status == (isSignal ? 143 : 2))
        #expect(agent.calls.elements.filter { $0.member == "GetNameState" }.count < rounds * names.count)
        if !isSignal {
            // Answers that came in time are printed.
            #expect(result.lines.map { $0.split(separator: " ").first ?? "" } == names.map { $0[...] })
            #expect(result.lines.first == "com.example.1 7" && result.lines.last == "com.example.500 -")
        }
    }

    @Test(arguments: anyBusKind())
    func `a bus that does not answer is no timeout of the user's`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        let waits = try [["wait", "a"], ["watch", "a"], ["wait", "a", "-t", "1h"], ["a", "-t", "1s"]].map { arguments in
            (arguments, try start(productPath("notify-state"), ["--address", bus.address] + arguments))
        }
        for (arguments, wait) in waits {
            #expect(try wait.wait().status == (arguments.contains("1s") ? 2 : 69), "\(arguments)")
        }
    }

    @Test(arguments: anyBusKind())
    func `wait sees a state that is there already, and ends by the time-out if it does not come`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let center = scene.bus.makeCenter()
        let observation = try center.addObserver(for: "a", timeout: .seconds(25)) { _ in }
        #expect(try state(scene, ["set", "a", "1"]).status == 0)
        let there = try state(scene, ["wait", "a", "--is", "1"])
        #expect(there.status == 0 && there.output == "1\n")
        #expect(try state(scene, ["wait", "a", "--not", "0"]).output == "1\n")
        let late = try inTime {
            try state(scene, ["wait", "a", "--is", "2", "-t", "1s"])
        } unless: {
            $0.errorOutput != "notify-state: timed out\n"
        }
        #expect(late.status == 2 && late.output == "")
        #expect(late.errorOutput == "notify-state: timed out\n")
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `watch prints the state and each change`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let watching = try start(productPath("notify-state"), ["--address", scene.bus.address, "watch", "a"])
        try watching.waitForOutput(containing: "0\n")
        for value in [3, 4, 3] {
            let before = try watching.waitForOutput(containing: "0\n")
            #expect(try state(scene, ["set", "a", "\(value)"] + (value == 4 ? [] : ["--post"])).status == 0)
            try #require(waitUntil { (try? watching.waitForOutputLines(1).joined()) != nil && before.count > 0 })
            try watching.waitForOutputLines(before.split(separator: "\n").count + 1)
        }
        watching.send(signal: SIGTERM)
        let result = try watching.wait()
        #expect(result.output == "0\n3\n4\n3\n")
        #expect(!result.exitedNormally && result.status == 143)
    }

    @Test(arguments: busKinds)
    func `wait --is never misses a setter, whether it posts before, after or not at all`(kind: BusKind) throws {
        let scene = try Scene(kind)
        // Keeps the state while no waiter does, and counts the rounds.
        let script = """
            set -e
            notify-wait -f -q state --ready-file "$1/ready" & keeper=$!
            until [[ -e $1/ready ]]; do read -rt 0.01 <> <(:) || true; done
            for ((round = 1; round <= $2; round++)); do
                notify-state wait state --is $round -t 120s >"$1/out" & waiter=$!
                case $((round % 3)) in
                0) notify-post state; notify-state set state $round ;;
                1) notify-state set state $round --post ;;
                2) notify-state set state $round ;;
                esac
                wait $waiter
                [[ $(<"$1/out") == $round ]]
            done
            kill $keeper
            """
        let folder = try TemporaryFolder()
        let rounds = isLongRun ? 1_000 : 15
        let result = try scene.bus.script(script, [folder.path, "\(rounds)"], timeout: .seconds(900))
        #expect(result.status == 0, "\(result.errorOutput)")
    }

    @Test(
        arguments: [
            (["wait", "a", "b"], "'wait' takes one name"), (["set", "a"], "'set' takes a name and a value"),
            (["set", "a", "-"], "'-' is not a state"), (["set", "a", "0x"], "'0x' is not a state"),
            (["set", "a", "18446744073709551616"], "is not a state"), (["set", "a", "+1"], "'+1' is not a state"),
            (["a", "--post"], "--post can only be used with 'set'"),
            (["watch", "a", "--is", "1"], "--is and --not can only be used with 'wait'"),
            (["wait", "a", "--is", "1", "--not", "2"], "use only one of --is and --not"), ([], "no name"),
        ] as [([String], String)]
    )
    func `a mistake is 64 and one sentence that says what to write`(arguments: [String], words: String) throws {
        let result = try run(productPath("notify-state"), ["--address", nowhere] + arguments)
        #expect(result.status == 64)
        #expect(result.errorOutput.hasPrefix("notify-state: ") && result.errorOutput.contains(words))
    }
}
