// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The messages of the lifecycle protocol as values, without a bus.
@Suite struct ProtocolMessageTests {
    private static let types: [any ProtocolArguments.Type] = {
        var types: [any ProtocolArguments.Type] = [
            RelayInterface.Synchronize.self
        ]
        for method in AgentInterface.methods + ObserverInterface.methods { types += [method, answer(of: method)] }
        for signal in AgentInterface.signals + ObserverInterface.signals { types.append(signal) }
        return types
    }()

    private static func answer<Call: ProtocolCall>(of call: Call.Type) -> any ProtocolArguments.Type {
        Call.Answer.self
    }

    /// The rows of a table of messages in Documentation/lifecycle-protocol.md: the types in the columns "in" and "out".
    private func rows(after heading: String) throws -> [String: [[String]]] {
        let text = try readFile("\(packageFolder)/Documentation/lifecycle-protocol.md")
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            .drop { !($0.hasPrefix("## ") && $0.contains("`\(heading)`")) }.drop { !$0.hasPrefix("| member") }
        var rows: [String: [[String]]] = [:]
        for line in lines.prefix(while: { $0.hasPrefix("|") }).dropFirst(2) {
            let cells = line.dropFirst().split(separator: "|").map(spans)
            for member in cells[0] {
                rows[member] = cells[1...2].map { $0.filter { $0.allSatisfy("abstuvh{}()".contains) } }
            }
        }
        return rows
    }

    /// What a cell has in backquotes.
    private func spans(of cell: Substring) -> [String] {
        let parts = cell.split(separator: "`", omittingEmptySubsequences: false)
        return parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
    }

    @Test func `the page on the protocol lists each message with its fields`() throws {
        func types(_ message: any ProtocolArguments.Type) -> [String] { message.parameters.map(\.type) }
        func expected(
            _ methods: [any ProtocolCall.Type],
            _ signals: [any ProtocolMessage.Type]
        ) -> [String: [[String]]] {
            var rows: [String: [[String]]] = [:]
            for method in methods { rows[method.member] = [types(method), types(Self.answer(of: method))] }
            for signal in signals { rows[signal.member] = [[], types(signal)] }
            return rows
        }
        #expect(try rows(after: "org.notifybus.Agent1") == expected(AgentInterface.methods, AgentInterface.signals))
        // The agent's calls are incoming here.
        var observer = expected(ObserverInterface.methods, [])
        for signal in ObserverInterface.signals { observer[signal.member] = [types(signal), []] }
        #expect(try rows(after: "org.notifybus.Observer1") == observer)
        let relay = expected(RelayInterface.methods, RelayInterface.signals)
        let written = try rows(after: "org.notifybus.Relay1")
        #expect(Set(written.keys) == Set(relay.keys))
        // Most are described as those of the agent.
        for (member, types) in written where !types.joined().isEmpty && member != "Register" {
            #expect(types == relay[member])
        }
    }

    @Test func `each message can read what it writes`() throws {
        var register = AgentInterface.Register()
        register.names = ["com.example.a", ""]
        register.prefixes = ["com."]
        register.state = .suspended
        register.previous = ":1.7"
        register.decider = "person"
        register.followsDesktop = true
        register.program = "prog"
        register.states = [AgentInterface.NameStateEntry(name: "com.example.a", number: .max, stamp: 1)]
        try check(register)
        try check(AgentInterface.Register())
        try check(AgentInterface.Register.Answer(state: .background, pending: ["a", "b"]))
        try check(AgentInterface.AddNames(names: ["a"], prefixes: []))
        try check(AgentInterface.RemoveNames(names: [], prefixes: ["b"]))
        try check(AgentInterface.Report(.background))
        try check(AgentInterface.SetState(target: "pid:1", state: .suspended, freezes: true))
        try check(AgentInterface.ConnectionCount(.max))
        try check(AgentInterface.SetNameState(name: "a", value: .max))
        try check(AgentInterface.SetNameState.Answer(5))
        try check(AgentInterface.SwapNameState(name: "a", old: 1, new: .max))
        try check(AgentInterface.SwapNameState.Answer(value: 1, stamp: 5))
        try check(AgentInterface.Hold("a"))
        try check(AgentInterface.Hold.Answer(5))
        try check(AgentInterface.LetGo(name: "a", number: .max))
        try check(AgentInterface.GetNameState("a"))
        try check(AgentInterface.GetNameState.Answer(5))
        try check(AgentInterface.FollowDesktop(true))
        try check(AgentInterface.Release(""))
        try check(AgentInterface.SetForeground(process: .max))
        try check(AgentInterface.List())
        try check(AgentInterface.OpenRelay())
        try check(AgentInterface.SetNaps(true))
        try check(RelayInterface.Synchronize())
        try check(ObserverInterface.DeliverPosts(names: ["a", "a"], senders: [":1.7", ""]))
        var entry = AgentInterface.ListEntry()
        entry.name = ":1.7"
        entry.isParked = true
        entry.decider = "person"
        entry.others = [("new", .double(1))]
        try check(AgentInterface.List.Answer(connections: [entry, AgentInterface.ListEntry()]))
        var report = AgentInterface.StatusReport()
        report.sources = [AgentInterface.SourceEntry(name: "x11", isLive: true, reason: "", fact: "f", facts: 2)]
        let status = try AgentInterface.Status.Answer(report.arguments)
        try check(status)
        let sources = try #require(status.fields.first { $0.key == "sources" })
        #expect(try AgentInterface.SourceEntry.entries(in: sources.value) == report.sources)
        try check(AgentInterface.StateChanged(connection: ":1.7", process: 1, application: "", from: "x", to: "y"))
        try check(AgentInterface.FactChanged(source: "x11", fact: "f"))
        try check(AgentInterface.Decided("logind"))
        try check(ObserverInterface.SetState(state: .foreground, additions: .max))
        try check(ObserverInterface.SetState.Answer(.max))
        try check(ObserverInterface.Deliver(["a"]))
        try check(ObserverInterface.Mark(9))
        try check(Acknowledgement())
    }

    private func check<Message: ProtocolArguments>(_ message: Message) throws {
        let arguments = message.arguments
        #expect(arguments.map(\.signature).joined() == Message.signature)
        #expect(try Message(arguments) == message)
        // One argument more or less, or a different type, makes a different message.
        #expect(throws: ArgumentError.self) { try Message(arguments + [.string("more")]) }
        for index in arguments.indices {
            var others = arguments
            others.remove(at: index)
            #expect(throws: ArgumentError.self) { try Message(others) }
            others = arguments
            others[index] = .variant(arguments[index])
            #expect(throws: ArgumentError.self) { try Message(others) }
        }
    }

    @Test func `a wrong type, an unknown state, and a repeated key are refused`() {
        let options: [[(String, BusValue)]] = [
            [("names", .string("a"))], [("names", .array(element: "s", [.uint32(1)]))], [("state", .string("asleep"))],
            [("socket", .uint32(0))], [("followsDesktop", .number(code: UInt8(ascii: "b"), 2))],
            [("states", .array(element: "(stt)", [.structure([.string("a"), .uint64(1)])]))],
            [("previous", .string("a")), ("previous", .string("b"))],
        ]
        for option in options {
            #expect(throws: ArgumentError.self) { try AgentInterface.Register([.dictionary(option)]) }
        }
        #expect(throws: ArgumentError.self) { try ObserverInterface.SetState([.string("Background"), .uint32(0)]) }
        #expect(throws: ArgumentError.self) { try ObserverInterface.Deliver([.array(element: "s", [.double(0)])]) }
        #expect(throws: ArgumentError.self) { try AgentInterface.SetForeground([.double(0.5)]) }
        #expect(throws: ArgumentError.self) { try AgentInterface.SetForeground([.double(.nan)]) }
        #expect(throws: Never.self) { try AgentInterface.SetForeground([.double(7)]) }
    }

    @Test func `no arguments trap, and whatever is read is written back unchanged`() {
        var random = RandomValues(SeededGenerator(seed: 20_262))
        for _ in 0..<20_000 {
            let type = Self.types[random.number(below: Self.types.count)]
            let arguments = random.number(below: 2) == 0 ? random.values() : random.values(of: type.parameters)
            readAndWrite(type, arguments)
        }
        #expect(random.count > 20_000)
    }

    private func readAndWrite<Message: ProtocolArguments>(_ type: Message.Type, _ arguments: [BusValue]) {
        guard let message = try? Message(arguments) else { return }
        // As text, because NaN differs from itself.
        #expect((try? Message(message.arguments)).map { "\($0)" } == "\(message)")
    }

    @Test func `whatever is read, only the kept descriptor stays open`() async {
        // In a process of its own, because other tests open descriptors too.
        await #expect(processExitsWith: .success) {
            // A file that nothing else in this process opens.
            let path = "/proc/self/exe"
            var file = stat()
            // Not stat: an emulator opens the program that it runs, and may look at itself.
            let probe = open(path, O_RDONLY | O_CLOEXEC)
            guard fstat(probe, &file) == 0, close(probe) == 0 else { exit(2) }
            func isOurs(_ descriptor: Int32) -> Bool {
                var other = stat()
                return fstat(descriptor, &other) == 0 && other.st_ino == file.st_ino && other.st_dev == file.st_dev
            }
            func count() -> Int { (0..<1_024).count { isOurs($0) } }
            func some() -> BusValue { .descriptor(open(path, O_RDONLY | O_CLOEXEC)) }
            let before = count()
            var kept: [Int32] = []
            for type in ProtocolMessageTests.types {
                _ = try? type.init([some()])
                _ = try? type.init([.dictionary([("socket", some()), ("names", some())])])
                _ = try? type.init([.dictionary([("socket", some()), ("later", some())])])
                _ = try? type.init([.array(element: "h", [some(), some()]), .variant(some())])
            }
            let register = try AgentInterface.Register([.dictionary([("socket", some()), ("later", some())])])
            if let socket = register.socket { kept.append(socket) }
            // Each registration in the loop has also kept one.
            guard count() == before + 2, kept.count == 1 else { exit(1) }
            exit(0)
        }
    }
}

/// Generates values, both valid on a bus and invalid.
private struct RandomValues {
    private var random: SeededGenerator
    private(set) var count = 0
    private static let texts = [
        "", "a", "com.example.a", "foreground", "background", "suspended", "default", ":1.7", "pid:1", "\u{0}é",
    ]
    private static let keys = [
        "names", "prefixes", "state", "previous", "decider", "followsDesktop", "program", "socket", "states", "name",
        "pid", "uid", "application", "parked", "pending", "dropped", "since", "focused", "sources", "live", "facts",
    ]

    init(_ random: SeededGenerator) { self.random = random }

    mutating func number(below limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    mutating func values() -> [BusValue] { (0..<number(below: 4)).map { _ in value(depth: 0) } }

    /// Values that mostly have the expected types.
    mutating func values(of parameters: [Parameter]) -> [BusValue] {
        parameters.map { number(below: 12) == 0 ? value(depth: 0) : value(of: $0.type, depth: 0) }
    }

    private mutating func text() -> String { Self.texts[number(below: Self.texts.count)] }

    private mutating func value(of type: String, depth: Int) -> BusValue {
        count += 1
        switch type {
        case "s": return .string(text())
        case "u": return .uint32(.random(in: 0...UInt32.max, using: &random))
        case "t": return .uint64(.random(in: 0...UInt64.max, using: &random))
        case "b": return .number(code: UInt8(ascii: "b"), UInt64(number(below: 3)))
        case "d": return .double([0, 1, -1, .nan, .infinity, 1e300][number(below: 6)])
        case "a{sv}":
            return .dictionary(
                (0..<number(below: 8)).map { _ in
                    (Self.keys[number(below: Self.keys.count)], value(depth: depth + 1))
                }
            )
        case _ where type.hasPrefix("a"):
            let element = String(type.dropFirst())
            let values = (0..<number(below: 4)).map { _ in
                number(below: 16) == 0 ? value(depth: depth + 1) : value(of: element, depth: depth + 1)
            }
            return .array(element: element, values)
        default: return value(depth: depth + 1)
        }
    }

    private mutating func value(depth: Int) -> BusValue {
        count += 1
        switch number(below: depth > 3 ? 5 : 11) {
        case 0: return .number(code: UInt8(number(below: 256)), .random(in: 0...UInt64.max, using: &random))
        case 1: return .double(.random(in: -4e9...4e9, using: &random))
        case 2: return .text(code: [115, 111, 103, 7][number(below: 4)], text())
        case 3: return .descriptor(-1)
        case 4: return value(of: ["s", "u", "t", "b", "d"][number(below: 5)], depth: depth)
        case 5: return value(of: ["a{sv}", "as", "aa{sv}", "a(stt)", "au"][number(below: 5)], depth: depth)
        case 6: return .array(element: text(), values())
        case 7: return .structure((0..<number(below: 4)).map { _ in value(depth: depth + 1) })
        case 8: return .entry(value(depth: depth + 1), value(depth: depth + 1))
        default: return .variant(value(depth: depth + 1))
        }
    }
}
