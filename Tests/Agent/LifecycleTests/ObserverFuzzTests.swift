// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// An observer that others try to control, and an agent that talks nonsense.
@Suite struct ObserverFuzzTests {
    @Test(arguments: busKinds)
    func `nobody but the agent can change an observer's state`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let center = agent.makeCenter()
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        let stranger = try RawBusClient(address: agent.bus.address)
        let reply = try stranger.call(
            destination: try center.observingName(),
            path: ObserverInterface.path,
            interface: ObserverInterface.name,
            member: "SetState",
            signature: "s",
            body: RawBusClient.stringBody("background")
        )
        #expect(reply.errorName == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(center.lifecycle.state == .foreground)
        try center.postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1))
        observation.cancel()
    }

    /// The bus, for which a relay stands in, passes on calls but is too busy to take the answers.
    @Test(arguments: busKinds)
    func `answers to strangers that the bus has yet to take are limited`(kind: BusKind) throws {
        // As on a session bus.
        let bus = try PrivateBus(kind, limits: ["max_replies_per_connection": 50_000])
        let relay = try BusRelay(to: bus.address)
        defer { relay.close() }
        let center = NotifyCenter(bus: .address(relay.address))
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        let stranger = try RawBusClient(address: bus.address)
        var command = RawMessage(.call)
        command.destination = try center.observingName()
        command.path = ObserverInterface.path
        command.interface = ObserverInterface.name
        command.member = "SetState"
        relay.hold()
        for _ in 0..<15_000 { try stranger.send(command) }
        try stranger.callBus("GetId")
        try NotifyCenter(bus: .address(bus.address)).postOnceConnected("com.example.x")
        // It has read the calls that came before.
        try #require(heard.wait(for: 1))
        relay.resume()
        try center.barrier(timeout: .patience)
        command.member = "Unknown"
        let answers = try stranger.answers(before: stranger.send(command))
        let bytes = answers.reduce(0) { $0 + $1.bytes.count }
        // Beside what the observer has queued, the sockets were full.
        #expect(bytes > 1 << 20 && bytes < 3 << 19, "\(answers.count) answers of \(bytes) bytes")
        #expect(center.lifecycle.state == .foreground)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `an agent that talks nonsense does no harm`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let nonsense: [[BusValue]] = [
            [], [.uint32(7)], [.string("asleep"), .strings([])], [.string("Background")], [.strings(["background"])],
            [.string("foreground"), .string("x")], [.variant(.variant(.string("background"))), .strings([])],
            [.dictionary([("state", .string("background"))]), .strings([])], [.descriptor(0), .strings([])],
        ]
        for answer in nonsense {
            let impostor = try Impostor(bus, answer: answer)
            let center = NotifyCenter(bus: .address(bus.address))
            let heard = Counter()
            let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
            for _ in 0..<10 {
                for arguments in nonsense { impostor.call(try center.observingName(), arguments) }
            }
            try impostor.center.barrier(timeout: .patience)
            try center.barrier(timeout: .patience)
            try center.postOnceConnected("com.example.x")
            #expect(heard.wait(for: 1))
            #expect(center.lifecycle.state == .foreground)
            observation.cancel()
            try? impostor.center.close(timeout: nil)
        }
    }

    @Test(arguments: busKinds)
    func `a registration does not wait forever for an agent that never answers`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let impostor = try Impostor(bus, answer: nil)
        let center = NotifyCenter(bus: .address(bus.address))
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        #expect(impostor.calls.value > 0)
        try center.postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1))
        observation.cancel()
    }
}

/// Owns the agent's name without being an agent.
private final class Impostor: Sendable {
    let center: NotifyCenter
    let calls = Counter()

    init(_ bus: PrivateBus, answer: [BusValue]?) throws {
        center = NotifyCenter(bus: .address(bus.address), peer: Peer(answer: answer, calls: calls))
        try center.open()
        let owns = Counter()
        center.perform { link in
            link.callBus("RequestName", [.string(AgentInterface.name), .uint32(4)]) { _ in owns.add() }
        }
        try #require(owns.wait(for: 1))
    }

    /// Makes an agent's calls, with arbitrary arguments.
    func call(_ observer: String, _ arguments: [BusValue]) {
        center.perform { link in
            for member in ["SetState", "Deliver", "Mark", "Other"] {
                link.tell(
                    observer,
                    path: ObserverInterface.path,
                    interface: ObserverInterface.name,
                    member: member,
                    arguments
                )
            }
        }
    }

    private final class Peer: BusPeer {
        private let answer: [BusValue]?
        private let calls: Counter
        private weak var link: BusLink?

        init(answer: [BusValue]?, calls: Counter) {
            self.answer = answer
            self.calls = calls
        }

        var keepsConnection: Bool { true }
        var takesDescriptors: Bool { true }
        func linkIsReady(_ link: BusLink) { self.link = link }
        func linkIsLost(_ error: NotifyBusError) {}
        func handle(_ signal: BusSignal) {}

        func handle(_ call: BusCall) -> Bool {
            calls.add()
            call.arguments.closeDescriptors()
            if let answer { link?.reply(to: call, answer) }
            return true
        }
    }
}
