// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames
import Synchronization
import TestSupport
import Testing

@testable import NotifyAgent

/// What the agent does with descriptors that others pass to it.
@Suite struct DescriptorTests {
    private func startAgent(_ bus: PrivateBus, descriptors: Int) throws -> RunningCommand {
        let agent = try start(
            "/bin/sh",
            [
                "-c", "ulimit -n \(descriptors) && exec \"$0\" --address \"$1\"", productPath("notify-agent"),
                bus.address,
            ],
            environment: withoutDesktop
        )
        try agent.waitForErrorOutput(containing: "ready")
        return agent
    }

    private func count(_ key: String, of client: RawBusClient) throws -> Int {
        let reply = try client.callAgent("Status")
        // "observers", a variant with signature u: the number follows, at the next multiple of 4.
        let text = Array(key.utf8) + [0, 1, UInt8(ascii: "u"), 0]
        guard let start = reply.body.firstRange(of: text) else { throw TestSupportError("Status has no \(key)") }
        let place = (start.upperBound + 3) / 4 * 4
        return reply.body[place..<(place + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    @Test(arguments: anyBusKind())
    func `an agent with few descriptors serves more observers than it has descriptors`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try startAgent(bus, descriptors: 64)
        let person = try RawBusClient(address: bus.address)
        var observers = try (0..<60).map { number in
            let client = try RawBusClient(address: bus.address, passesDescriptors: true)
            #expect(try client.register(["com.example.\(number)"], with: client.socket).kind == .reply, "\(number)")
            return client
        }
        // Each process takes a descriptor too.
        let programs = try (0..<30).map { _ in
            try start(
                productPath("notify-wait"),
                ["--address", bus.address, "-v", "-f", "com.example.a"],
                environment: withoutDesktop
            )
        }
        for program in programs { try program.waitForErrorOutput(containing: "the observer is live") }
        #expect(try count("observers", of: person) == 90)
        #expect(openDescriptors(of: agent.pid) < 64)

        // It still changes states,
        for number in [0, 59] {
            let serial = try person.begin(observers[number].uniqueName, "background")
            #expect(try observers[number].takeCall("SetState").string == "background")
            #expect(try person.answer(to: serial).kind == .reply)
        }
        for program in [programs[0], programs[29]] {
            #expect(try person.keepSettingState("pid:\(program.pid)", "suspended").kind == .reply)
        }
        // notices when a program exits,
        observers.removeLast(30)
        #expect(try waitUntil { try count("observers", of: person) == 60 })
        for program in programs { program.send(signal: SIGKILL) }
        #expect(try waitUntil { try count("observers", of: person) == 30 })
        // The agent has duplicates of these.
        for observer in observers { shutdown(observer.socket, Int32(SHUT_RDWR)) }
        #expect(try waitUntil { try count("observers", of: person) == 0 })
        // and keeps nothing of them.
        let end = try RawBusClient(address: bus.address, passesDescriptors: true)
        #expect(try end.register(["com.example.end"], with: end.socket).kind == .reply)
        #expect(openDescriptors(of: agent.pid) < 32)
    }

    @Test(arguments: anyBusKind())
    func `only a connection to this bus is kept as a socket`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let other = try PrivateBus(kind)
        let agent = try startAgent(bus, descriptors: 1_024)
        let client = try RawBusClient(address: bus.address, passesDescriptors: true)
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let file = open("/dev/zero", O_RDONLY)
        defer { for descriptor in pair + [file] { close(descriptor) } }
        let stranger = try RawBusClient(address: other.address)
        for descriptor in [pair[0], file, stranger.socket] {
            #expect(try client.register(["com.example.a"], with: descriptor).kind == .reply)
            #expect(!has(agent.pid, descriptor))
        }
        #expect(try client.register(["com.example.a"], with: client.socket).kind == .reply)
        #expect(has(agent.pid, client.socket))
    }

    @Test(arguments: anyBusKind())
    func `unwanted descriptors in calls cost the agent nothing`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let pid = agent.agent.pid
        try agent.checkAlive()
        for count in [1, 16, 253] {
            for member in ["Ping", "Register", "SetState", "Nothing"] {
                let client = try RawBusClient(address: agent.bus.address, passesDescriptors: true)
                // A bus that passes at most sixteen ends the connection.
                let descriptors = [Int32](repeating: client.socket, count: count)
                _ = try? client.callAgent(member, signature: "", body: [], with: descriptors)
            }
            try agent.checkAlive()
        }
        #expect(waitUntil { openDescriptors(of: pid) < 32 }, "\(openDescriptors(of: pid))")
    }

    /// Whether another process has the file open that this process has under a descriptor.
    private func has(_ process: pid_t, _ descriptor: Int32) -> Bool {
        func file(_ path: String) -> [UInt64] {
            var facts = stat()
            return stat(path, &facts) == 0 ? [facts.st_dev, facts.st_ino].map { UInt64($0) } : []
        }
        let own = file("/proc/self/fd/\(descriptor)")
        return (0..<1_024).contains { file("/proc/\(process)/fd/\($0)") == own }
    }

    @Test func `an endless stream is read up to a limit, and then every name counts as posted`() throws {
        let sleeper = try start("sleep", ["60"])
        let process = try ProcessHandle.open(sleeper.pid, user: geteuid()).get().0
        sleeper.send(signal: SIGSTOP)
        try #require(waitUntil { processState(sleeper.pid) == "T" })
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { close(pair[1]) }
        let bounds = ParkedStream.Bounds(bytes: 4 << 20)
        let stream = ParkedStream(socket: pair[0], process: process, agent: ":1.1", mark: 1, bounds: bounds)
        let zeros = [UInt8](repeating: 0, count: 65_536)
        var turns = 0
        while !stream.readSome() {
            turns += 1
            try #require(turns < 10_000)
            // Up to what there is room for.
            while send(pair[1], zeros, zeros.count, Int32(MSG_DONTWAIT)) > 0 {}
        }
        let names = try Set(["com.example.a", "com.example.b"].map { try NotifyName($0) })
        let found = stream.finish().names(amongst: Subjects(names: names))
        #expect(Set(found) == names && found.count == 2)

        // The same for one that sends nothing.
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let silent = ParkedStream(
            socket: pair[0],
            process: process,
            agent: ":1.1",
            mark: 1,
            bounds: ParkedStream.Bounds(time: 0)
        )
        #expect(!silent.isStuck() && !silent.readSome())
        silent.markIsRouted()
        #expect(silent.isStuck() && silent.readSome())
    }

    @Test func `a bus that is slow to put the mark into a stream is waited for`() throws {
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { close(pair[1]) }
        let stream = ParkedStream(socket: pair[0], process: nil, agent: ":1.1", mark: 1)
        #expect((0..<10).allSatisfy { _ in !stream.isStuck() })
        stream.markIsRouted()
        // By now the mark has come, or it is lost.
        #expect((0..<3).map { _ in stream.isStuck() } == [false, false, true])
    }

    @Test func `the stream of a process that has continued is not waited for`() throws {
        let sleeper = try start("sleep", ["60"])
        let process = try ProcessHandle.open(sleeper.pid, user: geteuid()).get().0
        sleeper.send(signal: SIGSTOP)
        try #require(waitUntil { processState(sleeper.pid) == "T" })
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { close(pair[1]) }
        let stream = ParkedStream(socket: pair[0], process: process, agent: ":1.1", mark: 1)
        #expect(!stream.readSome() && !stream.isStuck())
        // It reads the mark itself, and nothing else ever comes.
        sleeper.send(signal: SIGCONT)
        try #require(waitUntil { processState(sleeper.pid) != "T" })
        #expect(stream.isStuck() && stream.readSome())
    }
}
