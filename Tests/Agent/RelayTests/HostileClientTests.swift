// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent
@testable import NotifyCore

/// Programs that demand as much of the relay as they can, or answer nothing: whatever they do, others hear.
@Suite struct HostileClientTests {
    private static let refused = "org.freedesktop.DBus.Error.LimitsExceeded"

    @Test(arguments: busKinds)
    func `an answer to SetState of 2^64-1 does no harm, and counts as that much`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        var quotas = Quotas()
        quotas.pendingBytes = 1_000
        let host = try RelayHost(bus, quotas: quotas)
        let client = try RelayClient(address: bus.address)
        try client.observe([], prefixes: ["com.example."])
        client.dropped = .max
        let name = client.bus.uniqueName
        func tell(_ state: LifecycleState) {
            host.perform { relay in relay.tell(name, state) }
        }
        tell(.suspended)
        try client.run { $0.states == ["suspended"] }
        // More than there is room for, so that the relay has dropped some itself.
        let poster = NotifyCenter(bus: .address(bus.address))
        for number in 0..<100 { try poster.postOnceConnected(NotifyName("com.example.n\(number)")) }
        try poster.synchronize(timeout: .patience)
        #expect(try client.answer(to: client.synchronize()).kind == .reply)
        tell(.foreground)
        try client.run { $0.states.count == 2 && !$0.heard.isEmpty }
        #expect(client.heard.count < 100)
        try #require(host.replies.wait(forCount: 2))
        for case .done(let dropped, _) in host.replies.elements { #expect(dropped == .max) }
        try? poster.close(timeout: nil)
        host.close()
    }

    @Test(arguments: busKinds)
    func `of many names that come and go in parts exactly those are heard that a program observes`(kind: BusKind) throws
    {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus)
        let client = try RelayClient(address: bus.address)
        let poster = NotifyCenter(bus: .address(bus.address))
        func names(_ part: Int) -> [String] { (0..<80).map { "com.example.part\(part).n\($0)" } }
        /// Posts a name of each part, one next to it, and one that ends it.
        func hear(_ parts: Set<Int>, end: String) throws {
            let before = client.heard.count
            for part in 0..<3 {
                try poster.postOnceConnected(NotifyName("com.example.part\(part).n7.more"))
                try poster.postOnceConnected(NotifyName("com.example.part\(part).n7"))
            }
            try poster.postOnceConnected(NotifyName(end))
            try poster.synchronize(timeout: .patience)
            try client.run { $0.heard.count > before && $0.heard.last == end }
            #expect(client.heard.dropFirst(before) == parts.sorted().map { "com.example.part\($0).n7" }[...] + [end])
        }
        try client.observe(["com.example.end"])
        for part in 0..<3 {
            #expect(try client.answer(to: client.addNames(names(part))).kind == .reply)
            try hear(Set(0...part), end: "com.example.end")
        }
        for part in 0..<3 {
            let call = try client.call("RemoveNames", "asas", RelayClient.subjects(names(part), []))
            #expect(try client.answer(to: call).kind == .reply)
            try hear(Set(0..<3).subtracting(0...part), end: "com.example.end")
        }
        try? poster.close(timeout: nil)
        host.close()
    }

    @Test(arguments: busKinds)
    func `beyond its limit a sandbox is refused names with a sentence, part by part, and another has all of its own`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind)
        let process = try Stranger(address: scene.bus.address, user: geteuid(), .stays)
        let (hostile, other) = (try RelayClient(address: scene.bus.address), RelayClient(process.client))
        // Its connections count together.
        let second = try RelayClient(address: scene.bus.address)
        func names(_ part: Int) -> [String] { (0..<1_500).map { "com.example.part\(part).n\($0)" } }
        try hostile.observe(names(0))
        try second.observe(names(1))
        for client in [hostile, second] {
            let answer = try client.answer(to: client.addNames(names(2)))
            #expect(answer.errorName == HostileClientTests.refused)
            #expect(answer.string?.contains("can observe at most 4096 names and 256 prefixes") == true)
        }
        try other.observe(names(2))
        try scene.post(["com.example.part2.n7", "com.example.part1.n7"])
        try other.run { $0.heard == ["com.example.part2.n7"] }
        try second.run { $0.heard == ["com.example.part1.n7"] }
        // Names that it gives up make room.
        let call = try hostile.call("RemoveNames", "asas", RelayClient.subjects(names(0), []))
        #expect(try hostile.answer(to: call).kind == .reply)
        #expect(try second.answer(to: second.addNames(names(2))).kind == .reply)
        withExtendedLifetime(process) {}
    }

    @Test(arguments: busKinds)
    func `each of a crowd of connections that hear the same hears all of it in order, also what it waits for`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus)
        let clients = try (0..<30).map { _ in try RelayClient(address: bus.address) }
        for client in clients { try client.observe([], prefixes: ["com.", "com.example.", "com.example.n"]) }
        let expected = (0..<2_000).map { "com.example.n\($0)" }
        let results = Recorder<Bool>()
        let poster = NotifyCenter(bus: .address(bus.address))
        for name in expected { try poster.postOnceConnected(NotifyName(name)) }
        try poster.synchronize(timeout: .patience)
        for client in clients {
            startThread {
                let isAnswered = (try? client.answer(to: client.synchronize()).kind) == .reply
                results.append(isAnswered && client.heard == expected)
            }
        }
        try #require(results.wait(forCount: clients.count, timeout: .patience))
        #expect(results.elements.allSatisfy { $0 })
        try? poster.close(timeout: nil)
        host.close()
    }

    @Test(arguments: busKinds)
    func `another program's call is handled after a few of those that waited before it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus, isHeld: true)
        let process = try Stranger(address: bus.address, user: geteuid(), .stays)
        let (flooder, other) = (try RelayClient(address: bus.address), RelayClient(process.client))
        // The relay knows both.
        for (count, client) in [flooder, other].enumerated() {
            let call = try client.addNames(["com.example.first"])
            try #require(host.calls.wait(forCount: count + 1))
            host.answer(host.calls.elements[count])
            #expect(try client.answer(to: call).kind == .reply)
        }
        var last: UInt32 = 0
        for number in 0..<1_500 { last = try flooder.addNames(["com.example.n\(number)"]) }
        // Excess calls are refused at once, and so before those that wait are answered.
        #expect(try flooder.answer(to: last).errorName == HostileClientTests.refused)
        let call = try other.addNames(["com.example.other"])
        // This one has arrived when the one after it is refused.
        #expect(try flooder.answer(to: flooder.addNames(["com.example.end"])).errorName == HostileClientTests.refused)
        var count = 2
        while !host.calls.elements.dropFirst(2).contains(where: { $0.sender == other.bus.uniqueName }), count < 100 {
            host.answer(host.calls.elements[count])
            count += 1
            // As many are under way as before.
            try #require(host.calls.wait(forCount: count + 16))
        }
        #expect(count < 2 + 20)
        host.close()
        withExtendedLifetime((flooder, process, call)) {}
    }

    @Test(arguments: busKinds)
    func `a program with many connections leaves room, and turns, to its user's other programs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        var quotas = Quotas()
        quotas.calls = 64
        let host = try RelayHost(bus, quotas: quotas, isHeld: true)
        let flooders = try (0..<12).map { _ in try RelayClient(address: bus.address) }
        let process = try Stranger(address: bus.address, user: geteuid(), .stays)
        let other = RelayClient(process.client)
        for (count, client) in (flooders + [other]).enumerated() {
            let call = try client.addNames(["com.example.first"])
            try #require(host.calls.wait(forCount: count + 1))
            host.answer(host.calls.elements[count])
            #expect(try client.answer(to: call).kind == .reply)
        }
        let known = flooders.count + 1
        for client in flooders {
            for number in 0..<20 { _ = try client.addNames(["com.example.n\(number)"]) }
            // The bus has then passed them on.
            try client.bus.callBus("GetId")
        }
        let call = try other.addNames(["com.example.other"])
        try other.bus.callBus("GetId")
        // This one is refused at once, so the one before it has arrived.
        let tooMany = try flooders[0].addNames(["com.example.end"])
        #expect(try flooders[0].answer(to: tooMany).errorName == HostileClientTests.refused)
        var count = known
        while !host.calls.elements.dropFirst(known).contains(where: { $0.sender == other.bus.uniqueName }), count < 60 {
            try #require(host.calls.wait(forCount: count + 1))
            host.answer(host.calls.elements[count])
            count += 1
        }
        for call in host.calls.elements.dropFirst(count) { host.answer(call) }
        #expect(try other.answer(to: call).kind == .reply)
        // Sixteen were under way before, and the next turn is the other's.
        #expect(count <= known + 16 + 2, "after \(count - known) others")
        host.close()
    }

    @Test(arguments: busKinds)
    func `a program that does not read its answers is sent few, and others all of theirs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus)
        let (flooder, other) = (try RelayClient(address: bus.address), try RelayClient(address: bus.address))
        // The relay knows both.
        for client in [flooder, other] {
            #expect(try client.answer(to: client.addNames(["com.example.first"])).kind == .reply)
        }
        var question = RelayClient.message("Introspect", "", [])
        question.interface = "org.freedesktop.DBus.Introspectable"
        var missing: Set<UInt32> = []
        for _ in 0..<1_500 { missing.insert(try flooder.bus.send(question)) }
        #expect(try other.answer(to: other.addNames(["com.example.other"])).kind == .reply)
        var (answers, refusals) = (0, 0)
        while !missing.isEmpty {
            let message = try flooder.bus.readMessage()
            guard let serial = message.replySerial, missing.remove(serial) != nil else { continue }
            if message.kind == .reply { answers += 1 } else { refusals += 1 }
            if message.kind == .error { #expect(message.errorName == HostileClientTests.refused) }
        }
        #expect(answers > 0 && (refusals > 0 || kind == .broker), "\(answers) answers, \(refusals) refusals")
        // Answers that it has read no longer count.
        #expect(try waitUntil { try flooder.answer(to: flooder.bus.send(question)).kind == .reply })
        host.close()
    }

    @Test(arguments: busKinds)
    func `a call counts towards its user's quota until it is answered, and no longer`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        var quotas = Quotas()
        // A program may have half of them.
        quotas.calls = 20
        let host = try RelayHost(bus, quotas: quotas, isHeld: true)
        let client = try RelayClient(address: bus.address)
        var calls: [UInt32] = [try client.addNames(["com.example.a"])]
        #expect(host.calls.wait(forCount: 1))
        for number in 0..<9 { calls.append(try client.addNames(["com.example.n\(number)"])) }
        let tooMany = try client.addNames(["com.example.more"])
        #expect(try client.answer(to: tooMany).errorName == HostileClientTests.refused)
        #expect(host.calls.wait(forCount: 10))
        for call in host.calls.elements { host.answer(call) }
        for call in calls { #expect(try client.answer(to: call).kind == .reply) }
        let next = try client.addNames(["com.example.more"], wantsReply: false)
        #expect(host.calls.wait(forCount: 11))
        // A second call with the number of one that is pending would be taken for it.
        var again = RelayClient.message("AddNames", "asas", RelayClient.subjects(["com.example.again"], []))
        again.serial = next
        try client.bus.send(again)
        #expect(try client.answer(to: next).errorName == "org.freedesktop.DBus.Error.InvalidArgs")
        host.close()
    }

    @Test(arguments: busKinds)
    func `a rule that the bus refuses to one program refuses nothing to another`(kind: BusKind) throws {
        let bus = try PrivateBus(kind, rules: 16)
        let host = try RelayHost(bus)
        let (first, second) = (try RelayClient(address: bus.address), try RelayClient(address: bus.address))
        try first.observe([])
        try second.observe([])
        var count = 0
        while try first.answer(to: first.addNames(["com.example.n\(count)"])).kind == .reply {
            count += 1
            try #require(count < 100)
        }
        // The bus still has to reply about the first call when the second one comes.
        let call = try first.addNames(["com.example.x", "com.example.n0"])
        let other = try second.addNames(["com.example.n0"])
        #expect(try second.answer(to: other).kind == .reply)
        #expect(try first.answer(to: call).kind == .error)
        let poster = NotifyCenter(bus: .address(bus.address))
        try poster.postOnceConnected("com.example.n0")
        try first.run { $0.heard == ["com.example.n0"] }
        try second.run { $0.heard == ["com.example.n0"] }
        try? poster.close(timeout: nil)
        host.close()
    }

    @Test(arguments: busKinds)
    func `a name that one program asks for in vain together with others is heard by those who wait for it`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind, rules: 16)
        let host = try RelayHost(bus)
        let (first, second) = (try RelayClient(address: bus.address), try RelayClient(address: bus.address))
        try first.observe([])
        try second.observe([])
        let names = (0..<40).map { "com.example.n\($0)" }
        let call = try first.addNames(names)
        let other = try second.addNames([names[0]])
        #expect(try second.answer(to: other).kind == .reply)
        #expect(try first.answer(to: call).kind == .error)
        let poster = NotifyCenter(bus: .address(bus.address))
        try poster.postOnceConnected(NotifyName(names[0]))
        try second.run { $0.heard == [names[0]] }
        #expect(try first.answer(to: first.synchronize()).kind == .reply)
        #expect(first.heard == [])
        try? poster.close(timeout: nil)
        host.close()
    }

    enum Flood: CaseIterable, Sendable { case additions, silentAdditions, synchronizations, silentSynchronizations }

    @Test(arguments: busKinds, Flood.allCases)
    func `10,000 calls of one program grow the agent little, and another hears its posts`(
        kind: BusKind,
        flood: Flood
    ) throws {
        let scene = try RelayScene(kind)
        let process = try Stranger(address: scene.bus.address, user: geteuid(), .stays)
        let (hostile, other) = (try RelayClient(address: scene.bus.address), RelayClient(process.client))
        try hostile.observe(["com.example.hostile"])
        try other.observe(["com.example.other"])
        // It answers nothing, so its calls of Synchronize wait.
        try scene.post(["com.example.hostile"])
        let before = peakResidentBytes(of: scene.agentProcess)
        for number in 0..<10_000 {
            let name = "com.example.hostile.n\(number)"
            switch flood {
            case .additions: _ = try hostile.addNames([name])
            case .silentAdditions: _ = try hostile.addNames([name], wantsReply: false)
            case .synchronizations: _ = try hostile.synchronize()
            case .silentSynchronizations: _ = try hostile.synchronize(wantsReply: false)
            }
        }
        #expect(try other.answer(to: other.addNames(["com.example.later"])).kind == .reply)
        try scene.post(["com.example.other", "com.example.later"])
        try other.run { $0.heard == ["com.example.other", "com.example.later"] }
        let growth = peakResidentBytes(of: scene.agentProcess) - before
        #expect(growth < 6 << 20, "the agent grew by \(growth >> 10) kB")
        withExtendedLifetime((hostile, process)) {}
    }

    @Test(arguments: busKinds)
    func `250 connections that answer nothing keep neither posts nor states from another program`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind)
        var silent: [RelayClient] = []
        for number in 0..<250 {
            let client = try RelayClient(address: scene.bus.address)
            try client.observe(["com.example.a", "com.example.own\(number)"], prefixes: ["com.example."])
            silent.append(client)
        }
        try scene.post((0..<250).map { "com.example.own\($0)" })
        // A process of its own, as is every sandbox's proxy.
        let observer = try start(
            productPath("notify-wait"),
            ["-v", "-f", "--address", scene.bus.address, "com.example.a", "com.example.b"],
            environment: withoutDesktop.merging(["NOTIFYBUS_RELAY": "yes"]) { $1 }
        )
        try observer.waitForErrorOutput(containing: "the observer is live")
        try scene.post(["com.example.a"])
        try observer.waitForOutputLines(1)
        let target = "pid:\(observer.pid)"
        try scene.lifecycle("background", target)
        try scene.post(["com.example.a"])
        try scene.lifecycle("foreground", target)
        try scene.post(["com.example.b"])
        #expect(try observer.waitForOutputLines(2) == ["com.example.a", "com.example.b"])
        withExtendedLifetime(silent) {}
    }

    @Test(arguments: busKinds)
    func `programs that refuse whatever they are passed keep nothing from another, and are asked once a second`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus)
        // More than one owner may have under way.
        let refusing = try (0..<20).map { _ in try RelayClient(address: bus.address) }
        let other = try RelayClient(address: bus.address)
        for client in refusing + [other] { try client.observe(["com.example.a", "com.example.b"]) }
        let expected = ["com.example.a", "com.example.b", "com.example.b", "com.example.b"]
        let (began, results) = (ContinuousClock.now, Recorder<Bool>())
        for client in refusing {
            client.refuses = true
            startThread {
                let result = Result {
                    try client.run { $0.refusals == 3 }
                    client.refuses = false
                    // Refused posts are not lost.
                    try client.run { $0.heard == expected }
                }
                results.append((try? result.get()) != nil)
            }
        }
        let poster = NotifyCenter(bus: .address(bus.address))
        for count in 1...expected.count {
            try poster.postOnceConnected(NotifyName(expected[count - 1]))
            try other.run { $0.heard == Array(expected.prefix(count)) }
        }
        try #require(results.wait(forCount: refusing.count))
        #expect(results.elements.allSatisfy { $0 })
        #expect(ContinuousClock.now - began >= .seconds(2))
        try? poster.close(timeout: nil)
        host.close()
    }

    @Test(arguments: busKinds)
    func `a program that answers at last gets all that has waited for it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let host = try RelayHost(bus)
        // More than one owner may have under way, so that the last ones have not been called yet.
        let clients = try (0..<20).map { _ in try RelayClient(address: bus.address) }
        for client in clients { try client.observe(["com.example.a", "com.example.b"]) }
        let poster = NotifyCenter(bus: .address(bus.address))
        try poster.postOnceConnected("com.example.a")
        try poster.postOnceConnected("com.example.b")
        try poster.synchronize(timeout: .patience)
        // Each on a thread of its own: in which order they are called is not known.
        let results = Recorder<Bool>()
        for client in clients {
            startThread {
                let result = Result { try client.run { $0.heard == ["com.example.a", "com.example.b"] } }
                results.append((try? result.get()) != nil)
            }
        }
        try #require(results.wait(forCount: clients.count, timeout: .patience))
        #expect(results.elements.allSatisfy { $0 })
        try? poster.close(timeout: nil)
        host.close()
    }
}
