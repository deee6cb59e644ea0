// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization
import TestSupport
import Testing

/// Names added in a row by a program that has more of them than the bus allows match rules, and so waits for no answer.
@Suite struct ManyAdditionsTests {
    /// A program that hears every post, and an agent that has yet to answer its last addition, of "com.example.told".
    private final class Scene {
        private let bus: PrivateBus
        let agent: SlowAgent
        let center: NotifyCenter
        let heard = Recorder<String>()
        var observations: [NotifyCenter.Observation] = []

        init(_ kind: BusKind) throws {
            let rules = 128
            bus = try PrivateBus(kind, rules: rules)
            agent = try SlowAgent(bus)
            center = NotifyCenter(bus: .address(bus.address))
            let many = try (0..<2 * rules).map { try NotifyName("com.example.many.\($0)") }
            observations = [try center.addObserver(matching: .names(many), timeout: .seconds(25)) { _ in }]
            try center.barrier(timeout: .patience)
            try add("com.example.told")
            try #require(agent.additions.wait(forCount: 1, timeout: .patience))
        }

        func add(_ name: String) throws {
            observations.append(
                try center.addObserver(for: NotifyName(name), timeout: .seconds(25)) { [heard] in
                    heard.append($0.string)
                }
            )
        }

        deinit { for observation in observations { observation.cancel() } }
    }

    @Test(arguments: busKinds)
    func `while the agent has yet to answer an addition, the next ones gather for one call`(kind: BusKind) throws {
        let scene = try Scene(kind)
        let names = (0..<50).map { "com.example.untold.\($0)" }
        for name in names { try scene.add(name) }
        // Posts are heard meanwhile, without the agent.
        for name in names { try scene.center.postOnceConnected(NotifyName(name)) }
        try #require(scene.heard.wait(forCount: names.count, timeout: .patience))
        try scene.agent.center.barrier(timeout: .patience)
        #expect(scene.agent.additions.elements.last == ["com.example.told"])
        scene.agent.answer()
        try #require(scene.agent.additions.wait(forCount: 2, timeout: .patience))
        #expect(scene.agent.additions.elements.last?.sorted() == names.sorted())
    }

    @Test(arguments: busKinds)
    func `prefixes are told at once, and however many follow each other, one answer is due`(kind: BusKind) throws {
        let scene = try Scene(kind)
        try scene.add("com.example.untold")
        for number in 0..<50 {
            let subject = NotifySubject.prefix("org.example.\(number).")
            scene.observations.append(try scene.center.addObserver(matching: subject, timeout: .seconds(25)) { _ in })
        }
        // A removal follows everything.
        scene.observations[1].cancel()
        try #require(scene.agent.removals.wait(forCount: 1, timeout: .patience))
        #expect(scene.agent.additions.elements == [["com.example.told"]])
    }

    @Test(arguments: busKinds)
    func `the agent is told of what was added before it is told of a removal`(kind: BusKind) throws {
        let scene = try Scene(kind)
        try scene.add("com.example.untold")
        scene.observations[1].cancel()
        try #require(scene.agent.removals.wait(forCount: 1, timeout: .patience))
        #expect(scene.agent.unaskedAdditions.elements.last == ["com.example.untold"])
    }

    @Test(arguments: busKinds)
    func `a name that the agent had not been told of when it ended the connection is heard`(kind: BusKind) throws {
        let scene = try Scene(kind)
        try scene.add("com.example.untold")
        scene.agent.endConnection()
        // The agent knows what was posted of the names that it was told of: nothing.
        try #require(scene.heard.wait(forCount: 1, timeout: .patience))
        try #require(waitUntil(timeout: .patience) { scene.center.statistics.reconnects == 1 })
        try scene.center.postOnceConnected("com.example.told")
        try #require(scene.heard.wait(forCount: 2, timeout: .patience))
        #expect(scene.heard.elements == ["com.example.untold", "com.example.told"])
    }

    @Test(arguments: busKinds)
    func `when a connection is lost, each name is heard once, also one that the agent had not been told of`(
        kind: BusKind
    ) throws {
        let scene = try Scene(kind)
        try scene.add("com.example.untold")
        scene.agent.knowsNothing()
        scene.agent.endConnection()
        try #require(waitUntil(timeout: .patience) { scene.center.statistics.reconnects == 1 })
        // Comes after what is heard because of the loss.
        try scene.center.postOnceConnected("com.example.told")
        try #require(
            waitUntil(timeout: .patience) { scene.heard.elements.count { $0 == "com.example.told" } == 2 }
        )
        #expect(scene.heard.elements.count { $0 == "com.example.untold" } == 1)
    }
}

/// Owns the agent's name, has every program in the foreground, and answers additions when a test wants it to.
private final class SlowAgent: Sendable {
    let center: NotifyCenter
    private let registrar = Registrar()
    /// The names of each addition that is to be answered, of each other one, and of each removal.
    var additions: Recorder<[String]> { registrar.additions }
    var unaskedAdditions: Recorder<[String]> { registrar.unaskedAdditions }
    var removals: Recorder<[String]> { registrar.removals }

    init(_ bus: PrivateBus) throws {
        center = NotifyCenter(bus: .address(bus.address), peer: Peer(registrar))
        try center.open()
        let owns = Counter()
        center.perform { link in
            link.callBus("RequestName", [.string(AgentInterface.name), .uint32(4)]) { _ in owns.add() }
        }
        try #require(owns.wait(for: 1))
    }

    func answer() {
        let calls = registrar.takeCalls()
        center.perform { link in for call in calls { link.reply(to: call, []) } }
    }

    /// From now on it answers as one that knows nothing of what a program has missed.
    func knowsNothing() { registrar.isComplete.store(false, ordering: .relaxed) }

    /// As an agent does that has read what a stopped program was sent.
    func endConnection() { registrar.keep(socket: -1, shuttingDown: true) }

    private final class Peer: BusPeer {
        private let registrar: Registrar
        private weak var link: BusLink?

        init(_ registrar: Registrar) { self.registrar = registrar }

        var keepsConnection: Bool { true }
        var takesDescriptors: Bool { true }
        func linkIsReady(_ link: BusLink) { self.link = link }
        func linkIsLost(_ error: NotifyBusError) {}
        func handle(_ signal: BusSignal) { signal.arguments.closeDescriptors() }

        func handle(_ call: BusCall) -> Bool {
            do {
                if let answer = try registrar.handle(call) { link?.reply(to: call, answer) }
                return true
            } catch {
                return false
            }
        }
    }
}

/// What the agent was told.
private final class Registrar: Sendable {
    let additions = Recorder<[String]>()
    let unaskedAdditions = Recorder<[String]>()
    let removals = Recorder<[String]>()
    let isComplete = Atomic(true)
    private let unanswered = Mutex<[BusCall]>([])
    /// The connection of the program that registered last, which it has shared.
    private let socket = Mutex<Int32>(-1)

    deinit { keep(socket: -1) }

    /// - Returns: the answer, if there is one now.
    func handle(_ call: BusCall) throws -> [BusValue]? {
        switch call.member {
        case AgentInterface.Register.member:
            keep(socket: try AgentInterface.Register(reading: call.arguments).socket ?? -1)
            let isComplete = isComplete.load(ordering: .relaxed)
            return AgentInterface.Register.Answer(state: .foreground, pending: [], isComplete: isComplete).arguments
        case AgentInterface.AddNames.member:
            let names = try AgentInterface.AddNames(reading: call.arguments).names
            if call.wantsReply {
                unanswered.withLock { $0.append(call) }
                additions.append(names)
            } else {
                unaskedAdditions.append(names)
            }
        case AgentInterface.RemoveNames.member:
            removals.append(try AgentInterface.RemoveNames(reading: call.arguments).names)
        default: break
        }
        return nil
    }

    func takeCalls() -> [BusCall] {
        unanswered.withLock { calls in
            defer { calls = [] }
            return calls
        }
    }

    func keep(socket next: Int32, shuttingDown: Bool = false) {
        let last = socket.withLock { socket in
            defer { socket = next }
            return socket
        }
        guard last >= 0 else { return }
        if shuttingDown { shutdown(last, Int32(SHUT_RDWR)) }
        close(last)
    }
}
