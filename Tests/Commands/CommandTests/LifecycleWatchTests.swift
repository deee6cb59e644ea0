// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct LifecycleWatchTests {
    @Test(arguments: anyBusKind())
    func `watch prints each change when it happens, and nothing before`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus)
        let watching = try bus.startLifecycle("watch", "-v")
        try watching.waitForErrorOutput(containing: "watching")
        try agent.emit(stateChange(":1.5", 42, "org.example.Editor", "foreground", "background"))
        let first = try watching.waitForOutputLines(1)
        try agent.emit(stateChange(":1.6", 43, "", "background", "\u{1b}suspended"))
        let second = try watching.waitForOutputLines(2)
        #expect(first.count == 1)
        let words = first[0].split(separator: " ", maxSplits: 1)
        #expect(words[0].wholeMatch(of: #/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d/#) != nil)
        #expect(words[1] == "42 :1.5 org.example.Editor foreground → background")
        #expect(second[1].hasSuffix(" 43 :1.6 - background → \\x1bsuspended"))
        watching.send(signal: SIGTERM)
        #expect(try watching.wait().status == 143)
    }

    @Test(arguments: anyBusKind())
    func `watch begins with the present states, and prints the program and who decided`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observer = FakeObserver(more: [("decider", .string("person"))])
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([observer]))
        let watching = try bus.startLifecycle("watch")
        let block = try watching.waitForOutputLines(2)
        #expect(block[0].hasPrefix("PID  PROGRAM  APPLICATION"))
        #expect(block[1].hasPrefix("100  editor   org.example.Editor  foreground  person"))
        try agent.emit(stateChange(":1.5", 100, "org.example.Editor", "foreground", "background"))
        let line = try watching.waitForOutputLines(3)[2]
        #expect(line.hasSuffix(" 100 org.example.Editor foreground → background (editor, by person)"))
        try agent.emit(stateChange(":1.6", 101, "", "foreground", "background"))
        #expect(try watching.waitForOutputLines(4)[3].hasSuffix(" 101 - foreground → background"))
        watching.send(signal: SIGINT)
        #expect(try watching.wait().status == 130)
    }

    @Test(arguments: anyBusKind())
    func `if the agent goes before it has said who decided, watch names no one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let lists = Counter()
        let agent = try FakeAgent(on: bus) { call in
            guard call.member == "List" else { return .silence }
            lists.add()
            let observer = FakeObserver(more: [("decider", .string("default"))])
            return lists.value == 1 ? .reply(FakeObserver.list([observer])) : .death
        }
        let watching = try bus.startLifecycle("watch")
        try watching.waitForOutputLines(2)
        try agent.emit(stateChange(":1.5", 100, "org.example.Editor", "foreground", "suspended"))
        let line = try watching.waitForOutputLines(3)[2]
        #expect(line.hasSuffix(" 100 org.example.Editor foreground → suspended (editor)"), "\(line)")
        watching.send(signal: SIGTERM)
        _ = try watching.wait()
    }

    @Test(arguments: anyBusKind())
    func `watch --json begins with the observers, one object per line`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observer = FakeObserver(more: [("decider", .string("person"))])
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list([observer]))
        let watching = try bus.startLifecycle("watch", "--json")
        #expect(try watching.waitForOutputLines(1)[0].hasPrefix(#"{"name":":1.5","pid":100,"#))
        try agent.emit(stateChange(":1.5", 100, "app", "foreground", "background"))
        let line = try watching.waitForOutputLines(2)[1]
        #expect(line.hasSuffix(#""from":"foreground","to":"background","program":"editor","decider":"person"}"#))
    }

    @Test(arguments: anyBusKind())
    func `without -v a line contains the time, the process, the application and both states`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus)
        let watching = try bus.startLifecycle("watch", "-q")
        // Nothing reports that it is live, so the change is repeated until it hears it.
        let hasHeard = try waitUntil {
            try agent.emit(stateChange(":1.5", 42, "app", "foreground", "background"))
            return (try? watching.waitForOutputLines(1, timeout: .milliseconds(20))) != nil
        }
        try #require(hasHeard)
        let line = try #require(watching.waitForOutputLines(1).first)
        #expect(line.split(separator: " ").dropFirst().joined(separator: " ") == "42 app foreground → background")
    }

    @Test(arguments: anyBusKind())
    func `watch --json prints an object for each change`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus)
        let watching = try bus.startWatching("--json")
        try agent.emit(stateChange(":1.5", 42, "a\"b", "foreground", "background"))
        let line = try #require(watching.waitForOutputLines(1).first)
        let expected = #","name":":1.5","pid":42,"application":"a\"b","from":"foreground","to":"background"}"#
        #expect(line.hasPrefix(#"{"time":""#) && line.hasSuffix("\"" + expected))
    }

    @Test(arguments: anyBusKind())
    func `a change that another client than the agent announces is not believed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus)
        let watching = try bus.startWatching()
        let forger = try RawBusClient(address: bus.address)
        let forgery = stateChange(":1.5", 666, "app", "foreground", "background")
        let names = try forger.uniqueNames()
        #expect(names.count >= 3)
        for name in names { try FakeAgent.emit(forgery, by: forger, to: name) }
        try FakeAgent.emit(forgery, by: forger)
        // The bus has routed everything before the answer.
        try forger.callBus("GetId")
        try agent.emit(stateChange(":1.5", 42, "app", "foreground", "background"))
        let lines = try watching.waitForOutputLines(1)
        #expect(lines.count == 1)
        #expect(lines[0].contains(" 42 "))
    }

    @Test(arguments: anyBusKind())
    func `invalid changes are skipped and reported once, and watch continues`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus)
        let watching = try bus.startWatching()
        let change = stateChange(":1.5", 42, "app", "foreground", "background")
        for index in change.indices {
            var wrong = change
            wrong[index] = .int32(1)
            try agent.emit(wrong)
            try agent.emit(Array(change.dropLast(index + 1)))
        }
        try agent.emit([(0..<40).reduce(Wire.uint32(1)) { value, _ in .variant(value) }])
        try agent.emit(change)
        #expect(try watching.waitForOutputLines(1).count == 1)
        watching.send(signal: SIGINT)
        let result = try watching.wait()
        #expect(result.status == 130)
        #expect(result.errorOutput.split(separator: "\n").filter { $0.contains("ignoring invalid changes") }.count == 1)
    }

    @Test(arguments: anyBusKind())
    func `watch survives its agent and hears the next one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let watching = try {
            let agent = try FakeAgent(on: bus)
            let watching = try bus.startWatching()
            try agent.die()
            return watching
        }()
        let away = "notify-lifecycle: the agent went away; waiting for it to come back\n"
        try watching.waitForErrorOutput(containing: away)
        let agent = try FakeAgent(on: bus)
        try watching.waitForErrorOutput(containing: away + "notify-lifecycle: the agent is back\n")
        try agent.emit(stateChange(":1.5", 42, "app", "foreground", "background"))
        try watching.waitForOutputLines(1)
    }

    @Test(arguments: anyBusKind())
    func `watch survives its bus and hears the agent on the next one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let first = try FakeAgent(on: bus)
        let watching = try bus.startWatching()
        bus.kill()
        let away = "notify-lifecycle: the bus went away; waiting for it to come back\n"
        try watching.waitForErrorOutput(containing: away)
        try bus.restart()
        let back = away + "notify-lifecycle: the bus is back; waiting for the agent\n"
        try watching.waitForErrorOutput(containing: back, timeout: .patience)
        let agent = try FakeAgent(on: bus)
        try watching.waitForErrorOutput(containing: back + "notify-lifecycle: the agent is back\n")
        try agent.emit(stateChange(":1.5", 42, "app", "foreground", "background"))
        try watching.waitForOutputLines(1)
        #expect(first.calls.elements.allSatisfy { $0.member == "List" })
    }

    @Test(arguments: anyBusKind())
    func `watch exits quietly when its output is no longer read, without waiting for a change`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus)
        let script = #""$1" --address "$2" watch -v | head -n 1; echo "status ${PIPESTATUS[0]}""#
        let arguments = ["-c", script, "bash", try productPath("notify-lifecycle"), bus.address]
        let command = try start("bash", arguments, input: .null)
        try command.waitForErrorOutput(containing: "watching")
        try agent.emit(stateChange(":1.5", 42, "app", "foreground", "background"))
        let result = try command.wait()
        #expect(result.lines.count == 2)
        #expect(result.lines.last == "status 0")
        #expect(result.errorOutput == "notify-lifecycle: watching\n")
    }
}
