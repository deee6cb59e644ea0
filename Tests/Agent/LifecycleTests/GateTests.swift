// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

@testable import NotifyCore

/// Most tests need no more than the core.
private typealias NotifyCenter = NotifyCore.NotifyCenter
private typealias NotifyName = NotifyCore.NotifyName
private typealias NotifyBusError = NotifyCore.NotifyBusError

@Suite struct GateTests {
    @Test(arguments: busKinds)
    func `a background observer gets nothing, then or later`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Recorder<String>()
        let observation = try center.addObserver(for: "com.example.bg", timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let name = try center.observingName()
        try poster.postOnceConnected("com.example.bg")
        try #require(heard.wait(forCount: 1, timeout: .patience))

        try agent.set(name, .background)
        #expect(center.lifecycle.state == .background)
        let before = agent.bus.residentBytes
        let posted: NotifyName = "com.example.bg"
        // Had the bus to keep these, it would grow by more than 6 MB.
        for number in 0..<(isLongRun ? 100_000 : 40_000) {
            try poster.postOnceConnected(posted)
            if number % 1_000 == 999 { try poster.flush(timeout: .patience) }
        }
        try poster.synchronize(timeout: .patience)
        #expect(agent.bus.residentBytes - before < 4 << 20)
        // An observer added in the background hears nothing either.
        let late = try center.addObserver(for: "com.example.late", timeout: .seconds(25)) { heard.append($0.string) }
        try poster.postOnceConnected("com.example.late")
        try poster.synchronize(timeout: .patience)

        try agent.set(name, .foreground)
        #expect(center.lifecycle.state == .foreground)
        try poster.postOnceConnected("com.example.late")
        try poster.postOnceConnected("com.example.bg")
        try #require(heard.wait(forCount: 3, timeout: .patience))
        try center.barrier(timeout: .patience)
        #expect(heard.elements == ["com.example.bg", "com.example.late", "com.example.bg"])
        observation.cancel()
        late.cancel()
    }

    @Test(.enabled(if: wakeUpObstacle == nil, "\(wakeUpObstacle ?? "")"), arguments: busKinds)
    func `a background process makes no system call for posts`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-f", "-v", "com.example.bg"],
            environment: ["NOTIFY_SOCKET": nil]
        )
        _ = try observer.waitForErrorOutput(containing: "live", timeout: .patience)
        let poster = agent.makeCenter()
        try agent.set("pid:\(observer.pid)", .background)
        let posted: NotifyName = "com.example.bg"
        // The first time there may still be work from the change itself: a thread of the center checks up to 5 ms later
        // whether a callback takes long.
        let sleepsThrough = try waitUntil {
            let count = wakeUps(of: observer.pid)
            for _ in 0..<20 {
                for _ in 0..<1_000 { try poster.postOnceConnected(posted) }
                try poster.synchronize(timeout: .patience)
            }
            return wakeUps(of: observer.pid) == count
        }
        #expect(sleepsThrough)
        try agent.set("pid:\(observer.pid)", .foreground)
        try poster.postOnceConnected(posted)
        let output = try observer.waitForOutputLines(1, timeout: .patience)
        #expect(output.count == 1)
    }

    @Test(arguments: busKinds)
    func `no post made in the background is delivered, every post outside is`(kind: BusKind) throws {
        let rounds = isLongRun ? 1_000 : 50
        let agent = try AgentBus(kind)
        let center = agent.makeCenter()
        let posters = (agent.makeCenter(), agent.makeCenter())
        let heard = Recorder<NotifyName>()
        let (inside, outside, stop) = (
            NotifyName("com.example.inside"), NotifyName("com.example.outside"), NotifyName("com.example.end")
        )
        let observation = try center.addObserver(matching: .names([inside, outside, stop]), timeout: .seconds(25)) {
            heard.append($0)
        }
        let name = try center.observingName()
        for _ in 0..<rounds {
            try agent.set(name, .background)
            try posters.0.postOnceConnected(inside)
            try posters.1.postOnceConnected(inside)
            try posters.0.synchronize(timeout: .patience)
            try posters.1.synchronize(timeout: .patience)
            try agent.set(name, .foreground)
            try posters.0.postOnceConnected(outside)
            try posters.1.postOnceConnected(outside)
            try posters.0.synchronize(timeout: .patience)
            try posters.1.synchronize(timeout: .patience)
        }
        try posters.0.postOnceConnected(stop)
        try #require(heard.wait(forCount: 2 * rounds + 1, timeout: .patience))
        try center.barrier(timeout: .patience)
        let elements = heard.elements
        #expect(elements.count == 2 * rounds + 1)
        let strays = elements.filter { $0 == inside }.count
        #expect(strays == 0)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a name that is canceled just before the gate closes leaves no rule on the bus`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let kept = try center.addObserver(for: "com.example.kept", timeout: .seconds(25)) { _ in }
        let name = try center.observingName()
        // It cancels while it reads the post after which the agent's call comes, and has more to do with the connection than
        // to remove rules, which is done later. If the callback takes long, another thread does that before the call.
        let wasLate = try waitUntil(timeout: .patience) {
            let canceled = try center.addObserver(for: "com.example.canceled", timeout: .seconds(25)) { _ in }
            let gates = Recorder<Bool>()
            let last = try center.addObserver(for: "com.example.last", timeout: .seconds(25)) { _ in
                canceled.cancel()
                center.perform { _ in gates.append(center.engine.observing.lifecycle.isOpen) }
            }
            var reading = try PausedReading(of: center)
            try poster.postOnceConnected("com.example.last")
            try #require(waitUntil { reading.waiting > 0 })
            let post = reading.waiting
            let ended = Counter()
            startThread {
                try? agent.set(name, .background)
                ended.add()
            }
            try #require(waitUntil { reading.waiting > post })
            reading.goOn()
            try #require(ended.wait(for: 1) && gates.wait(forCount: 1, timeout: .patience))

            reading = try PausedReading(of: center)
            let before = reading.waiting
            try poster.postOnceConnected("com.example.canceled")
            // The bus may write what it answers to the poster first.
            for _ in 0..<3 { try poster.synchronize(timeout: .patience) }
            #expect(reading.waiting == before)
            reading.goOn()
            last.cancel()
            try agent.set(name, .foreground)
            return gates.elements == [false]
        }
        #expect(wasLate)
        kept.cancel()
    }

    /// The thread that reads a center's connection, while it waits.
    private struct PausedReading {
        private let descriptor: Int32
        private let end = Counter()

        init(of center: NotifyCenter) throws {
            let descriptors = Recorder<Int32>()
            center.perform { [end] link in
                descriptors.append(link.descriptor)
                _ = end.wait(for: 1)
            }
            try #require(descriptors.wait(forCount: 1, timeout: .patience))
            descriptor = descriptors.elements[0]
        }

        /// How many bytes have come meanwhile.
        var waiting: Int32 {
            var count: Int32 = 0
            return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? count : 0
        }

        func goOn() { end.add() }
    }

    @Test(arguments: busKinds)
    func `posting from a background process is delivered to others`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, other) = (agent.makeCenter(), agent.makeCenter())
        let (own, theirs) = (Counter(), Counter())
        let mine = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in own.add() }
        let observation = try other.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in theirs.add() }
        try agent.set(try center.observingName(), .background)
        try center.postOnceConnected("com.example.x")
        #expect(theirs.wait(for: 1))
        try center.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        #expect(own.value == 0)
        mine.cancel()
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a suspended observer gets one delivery for each registration whose name was posted`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Recorder<String>()
        let names = try (0..<20).map { try NotifyName("com.example.suspended.\($0)") }
        let all = try center.addObserver(matching: .names(names), timeout: .seconds(25)) { heard.append($0.string) }
        let second = try center.addObserver(for: names[0], timeout: .seconds(25)) { heard.append("again \($0)") }
        let prefix = try center.addObserver(matching: .prefix("com.example.suspended.1"), timeout: .seconds(25)) {
            heard.append("prefix \($0)")
        }
        let name = try center.observingName()
        for round in 0..<3 {
            try agent.set(name, .suspended)
            for number in 0..<5_000 {
                try poster.postOnceConnected(names[number % 12])
                if number % 1_000 == 999 { try poster.flush(timeout: .patience) }
            }
            try poster.synchronize(timeout: .patience)
            try center.barrier(timeout: .patience)
            #expect(heard.count == round * 16)
            try agent.set(name, .foreground)
            try #require(heard.wait(forCount: (round + 1) * 16, timeout: .patience))
            try center.barrier(timeout: .patience)
        }
        // 12 names for the first, one more for the second, 1, 10 and 11 for the prefix.
        var expected = names.prefix(12).map(\.string) + ["again \(names[0])"]
        expected += [1, 10, 11].map { "prefix \(names[$0])" }
        let isExact = heard.elements.sorted() == (expected + expected + expected).sorted()
        #expect(isExact)
        try poster.postOnceConnected(names[15])
        #expect(heard.wait(forCount: 50, timeout: .patience))
        for observation in [all, second, prefix] { observation.cancel() }
    }

    @Test(.serialized, arguments: busKinds)
    func `a program's own report takes effect, and its changes can be followed`(kind: BusKind) async throws {
        let agent = try AgentBus(kind)
        try handOver(agent.bus.address, to: "own-report")
        await #expect(processExitsWith: .success) {
            let address = try handedOver(to: "own-report")
            // In a process of its own, because a report is for the whole process.
            let center = NotifyBus.NotifyCenter(bus: .address(address))
            let poster = NotifyCenter(bus: .address(address))
            let count = Counter()
            let changes = try center.lifecycle.changes()
            let observation = try await center.addObserver(for: "com.example.self") { _ in count.add() }
            try await center.lifecycle.report(.background)
            guard center.lifecycle.state == .background else { exit(2) }
            try poster.postOnceConnected("com.example.self")
            try poster.synchronize(timeout: .patience)
            try await center.lifecycle.report(.foreground)
            try poster.postOnceConnected("com.example.self")
            guard count.wait(for: 1) else { exit(3) }
            try center.core.barrier()
            guard count.value == 1 else { exit(4) }
            var iterator = changes.makeAsyncIterator()
            guard await iterator.next(isolation: nil) == .foreground else { exit(5) }
            observation.cancel()
            exit(0)
        }
    }

    @Test(arguments: busKinds)
    func `without an agent everyone is in the foreground, and a report says so`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = NotifyCenter(bus: .address(bus.address))
        #expect(center.lifecycle.state == .foreground)
        let error = try #require(throws: NotifyBusError.self) {
            try center.lifecycle.report(.background, timeout: .seconds(10))
        }
        #expect(error.code == .noAgent)
    }
}
