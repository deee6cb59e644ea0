// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Agents and programs of different releases understand each other. Here one side says what it said in release 1.0,
/// value by value: a later release may add to it, but these tests stay as they are.
@Suite struct ConversationTests {
    private static let registration: [(String, BusValue)] = [
        ("names", .strings(["com.example.a", "com.example.b"])), ("prefixes", .strings(["com.example.p."])),
        ("state", .string("")), ("previous", .string("")), ("program", .string("of-1.0")),
        ("decider", .string("default")), ("followsDesktop", .boolean(false)),
    ]

    // A program of 1.0, and this agent.

    @Test(arguments: busKinds)
    func `a program of 1.0 registers, is suspended and resumed`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let program = try Speaker(agent.bus)
        let center = agent.makeCenter()
        #expect(
            try program.ask("Register", [.dictionary(Self.registration)])
                == [.string("foreground"), .strings([]), .boolean(false)]
        )
        #expect(try program.ask("AddNames", [.strings(["com.example.c"]), .strings([])]) == [])
        #expect(try program.ask("RemoveNames", [.strings(["com.example.b"]), .strings([])]) == [])

        let own = try program.name()
        let suspending = agent.begin("SetState", [.string(own), .string("suspended"), .boolean(false)])
        try program.expect("SetState", [.string("suspended"), .uint32(1)], answering: [.uint64(0)])
        try suspending.wait()
        for name in ["com.example.a", "com.example.b", "com.example.c", "com.example.p.x", "com.example.a"] {
            try center.postOnceConnected(NotifyName(name))
        }
        try center.synchronize(timeout: .patience)

        let resuming = agent.begin("SetState", [.string(own), .string("foreground"), .boolean(false)])
        try program.expect("SetState", [.string("foreground"), .uint32(1)], answering: [.uint64(0)])
        let delivered = try program.next("Deliver")
        #expect(
            Set(delivered.arguments.first?.strings ?? []) == ["com.example.a", "com.example.c", "com.example.p.x"]
        )
        program.answer(delivered, [])
        try resuming.wait()
    }

    @Test(arguments: busKinds)
    func `a program of 1.0 reports its state, and sets those of names`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let program = try Speaker(agent.bus)
        _ = try program.ask("Register", [.dictionary(Self.registration)])
        let report = try program.begin("Report", [.string("background")])
        try program.expect("SetState", [.string("background"), .uint32(0)], answering: [.uint64(0)])
        try report.wait()
        let stamp = try program.ask("SetNameState", [.string("com.example.a"), .uint64(7)])
        #expect(stamp.signature == "t")
        #expect(try program.ask("GetNameState", [.string("com.example.a")]) == [.uint64(7)])
        #expect(try program.ask("FollowDesktop", [.boolean(true)]) == [])
    }

    @Test(arguments: busKinds)
    func `a program of 1.0 that was suspended finds a later agent`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let program = try Speaker(agent.bus)
        let states = BusValue.array(
            element: "(stt)",
            [.structure([.string("com.example.a"), .uint64(9), .uint64(1)])]
        )
        let answer = try program.ask(
            "Register",
            [
                .dictionary(
                    Self.registration.map { key, value in
                        switch key {
                        case "state": (key, .string("suspended"))
                        case "decider": (key, .string("person"))
                        case "previous": (key, .string(":1.4711"))
                        default: (key, value)
                        }
                    } + [
                        ("earlier", .strings([":1.4710"])), ("reported", .string("background")), ("states", states),
                    ]
                )
            ]
        )
        #expect(answer == [.string("suspended"), .strings([]), .boolean(false)])
        try program.expect("SetState", [.string("suspended"), .uint32(0)], answering: [.uint64(0)])
        #expect(try program.ask("GetNameState", [.string("com.example.a")]) == [.uint64(9)])
    }

    @Test(arguments: busKinds)
    func `a program of 1.0 hears by the relay`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let program = try Speaker(agent.bus)
        let center = agent.makeCenter()
        #expect(try program.ask("OpenRelay", []) == [])
        #expect(
            try program.ask("Register", [.dictionary(Self.registration)], of: "Relay1")
                == [.string("foreground"), .strings([]), .boolean(false)]
        )
        #expect(try program.ask("AddNames", [.strings(["com.example.c"]), .strings([])], of: "Relay1") == [])
        try center.postOnceConnected("com.example.c")
        try center.synchronize(timeout: .patience)
        let posts = try program.next("DeliverPosts")
        #expect(posts.arguments.signature == "asas")
        #expect(posts.arguments.first == .strings(["com.example.c"]))
        program.answer(posts, [])
        #expect(try program.ask("Synchronize", [], of: "Relay1") == [])
    }

    // This library, and an agent of 1.0.

    @Test(arguments: busKinds)
    func `an agent of 1.0 suspends and resumes a program`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try Speaker(bus)
        try agent.own("org.notifybus.Agent1")
        let center = NotifyCenter(bus: .address(bus.address))
        let (live, heard) = (Counter(), Recorder<String>())
        let observation = try center.startObserving(
            .names(["com.example.a"]),
            using: { heard.append($0.string) },
            whenLive: { _ in live.add() }
        )
        let register = try agent.next("Register")
        #expect(register.arguments.signature == "a{sv}")
        let fields = register.arguments.first?.dictionary ?? [:]
        #expect(fields["names"] == .strings(["com.example.a"]))
        for (key, value) in Self.registration where key != "names" {
            #expect(fields[key]?.signature == value.signature, "\(key)")
        }
        #expect(fields["prefixes"] == .strings([]))
        #expect(fields["previous"] == .string(""))
        #expect(fields["state"] == .string("foreground"))
        agent.answer(register, [.string("foreground"), .strings([]), .boolean(false)])
        try #require(live.wait(for: 1, timeout: .patience))

        let program = register.sender
        #expect(
            try agent.ask("SetState", [.string("suspended"), .uint32(0)], of: "Observer1", to: program) == [.uint64(0)]
        )
        try NotifyCenter(bus: .address(bus.address)).postOnceConnected("com.example.a")
        #expect(center.lifecycle.state == .suspended)
        #expect(
            try agent.ask("SetState", [.string("foreground"), .uint32(0)], of: "Observer1", to: program) == [.uint64(0)]
        )
        #expect(try agent.ask("Deliver", [.strings(["com.example.a"])], of: "Observer1", to: program) == [])
        try #require(heard.wait(forCount: 1, timeout: .patience))
        #expect(heard.elements == ["com.example.a"])

        let states = BusValue.array(
            element: "(stt)",
            [.structure([.string("com.example.a"), .uint64(5), .uint64(1)])]
        )
        #expect(try agent.ask("KeepStates", [states], of: "Observer1", to: program) == [])
        agent.leave()
        let next = try Speaker(bus)
        try next.own("org.notifybus.Agent1")
        let again = try next.next("Register").arguments.first?.dictionary ?? [:]
        #expect(again["states"] == states)
        #expect(again["state"] == .string("foreground"))
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `an agent of 1.0 answers what a program reports`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try Speaker(bus)
        try agent.own("org.notifybus.Agent1")
        let center = NotifyCenter(bus: .address(bus.address))
        let observation = try center.startObserving(.names(["com.example.a"]), whenLive: { _ in })
        let register = try agent.next("Register")
        agent.answer(register, [.string("foreground"), .strings([]), .boolean(false)])
        let reported = Recorder<Bool>()
        try center.lifecycle.report(.background) { reported.append((try? $0.get()) != nil) }
        let report = try agent.next("Report")
        #expect(report.arguments == [.string("background")])
        #expect(
            try agent.ask("SetState", [.string("background"), .uint32(0)], of: "Observer1", to: report.sender)
                == [.uint64(0)]
        )
        agent.answer(report, [])
        try #require(reported.wait(forCount: 1, timeout: .patience))
        #expect(reported.elements == [true])
        #expect(center.lifecycle.state == .background)
        observation.cancel()
    }
}

/// Says on a bus what a test tells it to.
private final class Speaker: Sendable {
    private let center: NotifyCenter
    private let calls = Recorder<BusCall>()
    private let taken = Monitor(0)

    init(_ bus: PrivateBus) throws {
        center = NotifyCenter(bus: .address(bus.address), peer: Peer(calls))
        try center.open()
        try center.barrier(timeout: .patience)
    }

    /// The unique name of the connection.
    func name() throws -> String { try center.observingName() }

    func own(_ name: String) throws {
        let owns = Counter()
        center.perform { link in
            link.callBus("RequestName", [.string(name), .uint32(4)]) { _ in owns.add() }
        }
        try #require(owns.wait(for: 1, timeout: .patience))
    }

    func leave() { try? center.close(timeout: nil) }

    /// Calls a method of the agent, its relay or an observer.
    func begin(
        _ member: String,
        _ arguments: [BusValue],
        of service: String = "Agent1",
        to destination: String? = nil
    ) throws -> Call {
        let answers = Recorder<BusAnswer>()
        center.perform { link in
            link.call(
                destination ?? "org.notifybus.\(service)",
                path: "/org/notifybus/\(service)",
                interface: "org.notifybus.\(service)",
                member: member,
                arguments
            ) { answers.append($0) }
        }
        return Call(member: member, answers: answers)
    }

    func ask(
        _ member: String,
        _ arguments: [BusValue],
        of service: String = "Agent1",
        to destination: String? = nil
    ) throws -> [BusValue] {
        try begin(member, arguments, of: service, to: destination).wait()
    }

    /// The next call that it gets, which must be of this method.
    func next(_ member: String) throws -> BusCall {
        let number = taken.withLock { taken in
            taken += 1
            return taken
        }
        try #require(calls.wait(forCount: number, timeout: .patience), "\(member) is not called")
        let call = calls.elements[number - 1]
        try #require(call.member == member)
        return call
    }

    func expect(_ member: String, _ arguments: [BusValue], answering answer: [BusValue]) throws {
        let call = try next(member)
        #expect(call.arguments == arguments)
        self.answer(call, answer)
    }

    func answer(_ call: BusCall, _ answer: [BusValue]) {
        center.perform { link in link.reply(to: call, answer) }
    }

    struct Call {
        let member: String
        let answers: Recorder<BusAnswer>

        @discardableResult
        func wait() throws -> [BusValue] {
            try #require(answers.wait(forCount: 1, timeout: .patience), "\(member) is not answered")
            return try answers.elements[0].get()
        }
    }

    private final class Peer: BusPeer {
        private let calls: Recorder<BusCall>

        init(_ calls: Recorder<BusCall>) { self.calls = calls }

        var keepsConnection: Bool { true }
        var takesDescriptors: Bool { true }
        func linkIsReady(_ link: BusLink) {}
        func linkIsLost(_ error: NotifyBusError) {}
        func handle(_ signal: BusSignal) {}

        func handle(_ call: BusCall) -> Bool {
            // The bus asks nothing, and there is no other client.
            calls.append(call)
            return true
        }
    }
}

extension AgentBus {
    /// Calls a method as a command does.
    fileprivate func begin(_ member: String, _ arguments: [BusValue]) -> Speaker.Call {
        let answers = Recorder<BusAnswer>()
        perform { link in
            link.call(
                AgentInterface.name,
                path: AgentInterface.path,
                interface: AgentInterface.name,
                member: member,
                arguments
            ) { answers.append($0) }
        }
        return Speaker.Call(member: member, answers: answers)
    }
}
