// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

/// What an agent hands over, as bytes.
@Suite struct HeritageTests {
    private static let estate = {
        var estate = Estate()
        estate.agent = ":1.7"
        estate.unread = [1, 2, 3]
        let names: Set<NotifyName> = ["com.example.a", "com.example.b"]
        let process = ProcessID(pid: 4_711, startTime: 99, user: 1_000)
        var connection = Heritage.Connection(process: process)
        connection.name = ":1.9"
        connection.program = "program"
        connection.subjects = Subjects(names: names, prefixes: [NamePrefix("com.example.")])
        connection.isParked = true
        connection.stateAfterParking = .background
        connection.pending = ["com.example.b", "com.example.c"]
        (connection.dropped, connection.reportedDropped, connection.since) = (1, 2, 3)
        connection.person = .suspended
        connection.decision = Decision(.background, by: .source("logind"))
        connection.followsDesktop = true
        estate.heritage.connections = [connection]
        var entry = Heritage.Process(process)
        (entry.wish, entry.isReleased, entry.report, entry.frozenFor) = (.suspended, true, .background, 1_000)
        estate.heritage.processes = [entry, Heritage.Process(ProcessID(pid: 1, startTime: .max, user: 0))]
        estate.heritage.states = [
            Heritage.State(name: "com.example.s", entry: NameStateTable.Entry(value: .max, stamp: 5))
        ]
        estate.heritage.areNapsOff = true
        estate.hasRelay = true
        let prefixes = Set(connection.subjects.prefixes)
        estate.heritage.relayed = [
            Heritage.Relayed(name: ":1.5", user: 1_000, prefixes: prefixes, pending: ["com.example.a"])
        ]
        var launch = LaunchHeritage(title: "job", action: .command(["/bin/true", "-v"]))
        (launch.due, launch.missed) = (["com.example.a"], ["com.example.b"])
        launch.heard = Subjects(names: names, prefixes: [NamePrefix("com.example.")])
        launch.recentStarts = [1, .max]
        estate.launches = [
            launch, LaunchHeritage(title: "unit", action: .unit("a.service")),
            LaunchHeritage(title: "name", action: .activation("com.example.Name")),
        ]
        estate.posts = [UnidentifiedPost("com.example.a", from: ":1.8")]
        return estate
    }()

    @Test func `what is written is read`() throws {
        let bytes = try #require(Self.estate.bytes)
        #expect(try Estate(reading: bytes) == Self.estate)
    }

    /// As the agent of release 1.0 left it: a later release reads that as long as it can take over from one.
    @Test func `what release 1_0 has handed over is read`() throws {
        let text = try readFile("\(packageFolder)/Tests/Interface/heritage-1.0.hex")
        let bytes = try text.split(whereSeparator: \.isWhitespace).map { try #require(UInt8($0, radix: 16)) }
        #expect(try Estate(reading: bytes) == Self.estate)
    }

    @Test func `what is cut off, or of another version, is not read`() throws {
        let bytes = try #require(Self.estate.bytes)
        for count in 0..<bytes.count {
            #expect(throws: (any Error).self) { try Estate(reading: Array(bytes[..<count])) }
        }
        #expect(throws: (any Error).self) { try Estate(reading: [2] + bytes.dropFirst()) }
    }

    @Test func `what an agent leaves of programs to be started or behind the relay counts for itself`() throws {
        func read(_ fields: [(String, BusValue)]) throws -> Estate {
            let all: [(String, BusValue)] = [
                ("agent", .string(":1.7")), ("unread", .array(element: "y", [])),
                ("connections", .array(element: "a{sv}", [])), ("processes", .array(element: "a{sv}", [])),
                ("states", .array(element: "(stt)", [])), ("naps-off", .boolean(true)),
            ]
            var writer = BusValueWriter()
            writer.integer(UInt32(1))
            writer.write(.dictionary(all + fields))
            return try Estate(reading: writer.bytes)
        }
        // An older agent leaves none.
        #expect(try !read([]).hasUnreadable)
        let post = BusValue.structure([.string("com.example.a"), .string("not a connection")])
        let relayed = BusValue.dictionary([("name", .string("not a connection"))])
        #expect(try read([("relayed", .array(element: "a{sv}", [relayed]))]).hasUnreadable)
        let estate = try read([("launches", .string("nonsense")), ("posts", .array(element: "(ss)", [post]))])
        #expect(estate.hasUnreadable && estate.launches.isEmpty && estate.posts.isEmpty)
        #expect(estate.agent == ":1.7" && estate.heritage.areNapsOff)
    }

    @Test func `whatever is changed in it, reading ends`() throws {
        var generator = SeededGenerator(seed: 1)
        let bytes = try #require(Self.estate.bytes)
        for _ in 0..<20_000 {
            var changed = bytes
            for _ in 0...Int.random(in: 0..<4, using: &generator) {
                changed[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            guard let estate = try? Estate(reading: changed) else { continue }
            for connection in estate.heritage.connections { #expect(connection.dropped <= 1 << 48) }
        }
    }

    @Test func `two descriptors are told apart, and others are not taken`() throws {
        let file = MemoryFile.make([7, 8])
        #expect(MemoryFile.read(file) == [7, 8])
        let other = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let bequest = try #require(Bequest([other, file]))
        #expect(bequest.heritage == file && bequest.socket == other)
        bequest.close()
        #expect(Bequest([MemoryFile.make([])]) == nil)
        #expect(Bequest([MemoryFile.make([]), MemoryFile.make([])]) == nil)
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        #expect(MemoryFile.read(ends[0]) == nil)
        for end in ends { close(end) }
    }
}

/// Agents that hand over on a bus.
@Suite struct SuccessorTests {
    /// Has a client of the bus take the place of an agent, and starts one that is to take over from that.
    private func replace(_ scene: AgentBus, by old: RawBusClient, _ environment: [String: String] = [:]) throws
        -> RunningCommand
    {
        var name = RawBody()
        name.append(AgentInterface.name)
        name.append(UInt32(1 | 2 | 4))
        try #require(try old.callBus("RequestName", signature: "su", body: name.bytes).kind == .reply)
        #expect(try scene.agent.wait(timeout: .patience).status == 0)
        return try start(
            productPath("notify-agent"),
            ["--address", scene.bus.address, "--replace"],
            environment: withoutDesktop.merging(environment) { $1 }
        )
    }

    private func handOverNonsense(_ old: RawBusClient, _ call: RawMessage) throws {
        var answer = RawMessage(.reply)
        (answer.destination, answer.replySerial, answer.flags) = (call.sender, call.serial, 1)
        answer.signature = "hh"
        var body = RawBody()
        body.append(UInt32(0))
        body.append(UInt32(1))
        answer.body = body.bytes
        let file = MemoryFile.make(Array("nonsense".utf8))
        defer { close(file) }
        _ = try old.send(answer, with: [file, old.socket])
    }

    @Test(arguments: busKinds)
    func `what a successor can't read is ignored, and said`(kind: BusKind) throws {
        let scene = try AgentBus(kind)
        let old = try RawBusClient(address: scene.bus.address, passesDescriptors: true)
        let observer = try RawBusClient(address: scene.bus.address)
        try #require(try observer.register(["com.example.a"]).kind == .reply)
        // An agent whose answer means nothing.
        let successor = try replace(scene, by: old)
        // After a second it is asked whether it is there.
        var call = try old.readCall()
        while call.member == "Ping" { call = try old.readCall() }
        #expect(call.member == "HandOver")
        try handOverNonsense(old, call)
        let log = try withExtendedLifetime(old) { try successor.waitForErrorOutput(containing: "ready") }
        #expect(log.contains("ignored what another agent has left"))
    }

    /// It is asked each second, and may be silent for ten.
    @Test(arguments: anyBusKind())
    func `an agent is waited for as long as it answers, and given up if it does not`(kind: BusKind) throws {
        for answers in [12, 0] {
            let scene = try AgentBus(kind)
            let old = try RawBusClient(address: scene.bus.address, passesDescriptors: true)
            let successor = try replace(scene, by: old)
            var question: RawMessage?
            var count = 0
            while count < answers {
                let call = try old.readCall()
                guard call.member == "Ping" else {
                    question = call
                    continue
                }
                var answer = RawMessage(.reply)
                (answer.destination, answer.replySerial, answer.flags) = (call.sender, call.serial, 1)
                _ = try old.send(answer)
                count += 1
            }
            if answers > 0 { try handOverNonsense(old, #require(question)) }
            let log = try withExtendedLifetime(old) { try successor.waitForErrorOutput(containing: "ready") }
            #expect(log.contains("ignored what another agent has left") == (answers > 0))
            #expect(log.contains("it does not answer") == (answers == 0))
        }
    }

    @Test(arguments: busKinds)
    func `an agent that asks whether it is restarted hands over to one that calls meanwhile`(kind: BusKind) throws {
        let end = ContinuousClock.now + .patience
        var answer: RawMessage
        repeat {
            let bus = try PrivateBus(kind)
            let manager = try AnsweringService(bus, ["org.freedesktop.systemd1"], [:])
            defer { manager.end() }
            manager.mute("GetUnitByPID", always: true)
            let path = bus.folder + "/notify"
            let socket = try DatagramSocket(path, isAbstract: false)
            let agent = try start(
                productPath("notify-agent"),
                ["--address", bus.address],
                environment: withoutDesktop.merging(["XDG_RUNTIME_DIR": bus.folder, "NOTIFY_SOCKET": path]) { $1 }
            )
            try agent.waitForErrorOutput(containing: "ready")
            let successor = try RawBusClient(address: bus.address, passesDescriptors: true)
            agent.send(signal: SIGTERM)
            try #require(waitUntil { manager.count("GetUnitByPID") == 1 })
            answer = try successor.callAgent(AgentInterface.HandOver.member)
            #expect(try agent.wait(timeout: .patience).status == 0)
            withExtendedLifetime(socket) {}
            // It asks for half a second, which is too little on a busy machine.
        } while answer.kind != .reply && ContinuousClock.now < end
        #expect(answer.kind == .reply, "\(answer.errorName ?? "")")
    }

    /// The agent that it has asked hands over to the one that comes next.
    @Test(arguments: busKinds)
    func `an agent that is restarted before it was answered leaves nothing`(kind: BusKind) throws {
        let scene = try AgentBus(kind)
        let old = try RawBusClient(address: scene.bus.address, passesDescriptors: true)
        let manager = try AnsweringService(scene.bus, ["org.freedesktop.systemd1"], [:])
        defer { manager.end() }
        manager.mute("GetUnitByPID", always: true)
        let path = scene.bus.folder + "/notify"
        let socket = try DatagramSocket(path, isAbstract: false)
        let successor = try replace(scene, by: old, ["NOTIFY_SOCKET": path])
        while try old.readCall().member != "HandOver" {}
        successor.send(signal: SIGTERM)
        let end = try successor.wait(timeout: .patience)
        #expect(end.status == 0 && end.errorOutput.contains("terminating"))
        #expect(!end.errorOutput.contains("handing over") && manager.count("GetUnitByPID") == 1)
        withExtendedLifetime(socket) {}
    }

    @Test(arguments: busKinds)
    func `an agent that is asked to end while it hands over finishes that first`(kind: BusKind) throws {
        let scene = try AgentBus(kind)
        let observer = try RawBusClient(address: scene.bus.address)
        let successor = try RawBusClient(address: scene.bus.address, passesDescriptors: true)
        try #require(try observer.register(["com.example.a"]).kind == .reply)
        // As long as this is not answered, the agent waits, a second at most.
        _ = try observer.begin(observer.uniqueName, "background")
        while try observer.readCall().member != "SetState" {}
        var request = RawMessage(.call)
        request.destination = AgentInterface.name
        request.path = AgentInterface.path
        request.interface = AgentInterface.name
        request.member = AgentInterface.HandOver.member
        let serial = try successor.send(request)
        // The agent has begun with it when it answers this.
        try #require(try successor.callAgent("Ping", interface: "org.freedesktop.DBus.Peer").kind == .reply)
        scene.agent.send(signal: SIGTERM)
        let answer = try successor.answer(to: serial)
        #expect(answer.kind == .reply, "\(answer.errorName ?? "")")
        #expect(try scene.agent.wait(timeout: .patience).status == 0)
    }
}
