// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The agent's side of the protocol, with observers that do only what these tests say.
@Suite struct ProtocolTests {
    @Test(arguments: busKinds)
    func `a change is answered and announced once the observer has confirmed it`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        let control = try RawBusClient(address: agent.bus.address)
        let listener = try RawBusClient(address: agent.bus.address)
        try listener.addMatch("type='signal',interface='org.notifybus.Agent1'")
        let reply = try observer.register(["com.example.a"])
        #expect(reply.string == "foreground")

        let serial = try control.begin(observer.uniqueName, "background")
        let call = try observer.readCall()
        #expect(call.member == "SetState" && call.string == "background")
        // Nothing is announced before the observer has answered.
        // By now everything that the agent sent because of earlier calls has arrived.
        try control.settle()
        #expect(throws: TestSupportError.self) { _ = try control.answer(to: serial, timeout: .zero) }
        try observer.answerSetState(call)
        #expect(try control.answer(to: serial).uint32 == 1)
        var signal = try listener.readMessage()
        while signal.sender == "org.freedesktop.DBus" { signal = try listener.readMessage() }
        #expect(signal.member == "StateChanged" && signal.string == observer.uniqueName)
    }

    @Test(arguments: busKinds)
    func `posts during a suspension are kept as one bit per name, and delivered at resume`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        let control = try RawBusClient(address: agent.bus.address)
        let poster = try RawBusClient(address: agent.bus.address)
        _ = try observer.register(["com.example.a", "com.example.b", "com.example.c"])
        try poster.post("com.example.c")
        for _ in 0..<3 {
            var serial = try control.begin(observer.uniqueName, "suspended")
            _ = try observer.takeCall("SetState")
            #expect(try control.answer(to: serial).kind == .reply)
            for _ in 0..<50 {
                try poster.post("com.example.a")
                try poster.post("com.example.b")
            }
            serial = try control.begin(observer.uniqueName, "foreground")
            _ = try observer.takeCall("SetState")
            #expect(try observer.takeCall("Deliver").strings == ["com.example.a", "com.example.b"])
            #expect(try control.answer(to: serial).kind == .reply)
        }
        // Nothing comes back after the background.
        for state in ["suspended", "background", "foreground"] {
            let serial = try control.begin(observer.uniqueName, state)
            _ = try observer.takeCall("SetState")
            #expect(try control.answer(to: serial).kind == .reply)
            try poster.post("com.example.a")
        }
        try observer.settle()
        #expect(throws: TestSupportError.self) { _ = try observer.readCall(timeout: .zero) }
    }

    @Test(arguments: busKinds)
    func `the last of several requests wins, and each is answered`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        let control = try RawBusClient(address: agent.bus.address)
        _ = try observer.register(["com.example.a"])
        let serials = try ["background", "suspended", "foreground", "suspended"].map {
            try control.begin(observer.uniqueName, $0)
        }
        // How many of them the agent has seen when the observer answers the first is a matter of chance; those in
        // between may be passed over.
        let told = Recorder<String>()
        let reader = Counter()
        startThread {
            while let call = try? observer.takeCall("SetState") { told.append(call.string ?? "") }
            reader.add()
        }
        for serial in serials { #expect(try control.answer(to: serial).kind == .reply) }
        #expect(told.wait(timeout: .patience) { $0.first == "background" && $0.last == "suspended" })
        #expect(told.count <= 4)
        agent.bus.kill()
        #expect(reader.wait(for: 1, timeout: .patience))
    }

    @Test(arguments: busKinds)
    func `an observer that does not answer is reported after five seconds, one that dies counts as done`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind)
        let control = try RawBusClient(address: agent.bus.address)
        let silent = try RawBusClient(address: agent.bus.address)
        _ = try silent.register(["com.example.a"])
        let center = NotifyCenter(bus: .address(agent.bus.address))
        let observation = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { _ in }
        let serial = try control.begin(silent.uniqueName, "background")
        // It belongs to this process, and a report is for the whole process.
        let error = #expect(throws: NotifyBusError.self) {
            try center.lifecycle.report(.background, timeout: .patience)
        }
        #expect(error?.code == .timedOut && error?.description.contains(silent.uniqueName) == true)
        observation.cancel()
        let answer = try control.answer(to: serial)
        #expect(answer.errorName == "org.notifybus.Error.TimedOut")
        #expect(answer.string?.contains(silent.uniqueName) == true)

        var mortal: RawBusClient? = try RawBusClient(address: agent.bus.address)
        let name = try #require(mortal?.uniqueName)
        _ = try mortal?.register(["com.example.a"])
        let second = try control.begin(name, "suspended")
        // It may be told of its process's state first, which says nothing about whether the agent has read the request.
        while let call = try mortal?.readCall(), call.string != "suspended" {
            if call.member == "SetState" { try mortal?.answerSetState(call) }
        }
        mortal = nil
        let last = try control.answer(to: second)
        #expect(last.kind == .reply, "\(last.errorName ?? "")")
        #expect(try control.setState(name, "background").errorName == "org.notifybus.Error.NoSuchTarget")
    }

    @Test(arguments: busKinds)
    func `a new connection of a process in the background begins there`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let first = try RawBusClient(address: agent.bus.address)
        let control = try RawBusClient(address: agent.bus.address)
        _ = try first.register(["com.example.a"])
        let serial = try control.begin("pid:\(getpid())", "background")
        _ = try first.takeCall("SetState")
        #expect(try control.answer(to: serial).uint32 == 1)
        let second = try RawBusClient(address: agent.bus.address)
        #expect(try second.register(["com.example.a"], state: "foreground").string == "background")
    }

    @Test(arguments: busKinds)
    func `a connection that replaces another follows the desktop if it says so`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let first = try RawBusClient(address: agent.bus.address)
        let second = try RawBusClient(address: agent.bus.address)
        let desktop = try RawBusClient(address: agent.bus.address)
        let witness = try RawBusClient(address: agent.bus.address)
        #expect(try first.register(["com.example.a"]).string == "foreground")
        #expect(try witness.register(["com.example.a"], followsDesktop: true).string == "foreground")
        #expect(try desktop.callAgent("SetForeground", signature: "u", body: [1, 0, 0, 0]).kind == .reply)
        // The agent has recorded it.
        #expect(try witness.takeCall("SetState").string == "background")
        let reply = try second.register(
            ["com.example.a"],
            state: "foreground",
            previous: first.uniqueName,
            followsDesktop: true
        )
        #expect(reply.string == "foreground")
        #expect(try second.takeCall("SetState").string == "background")
    }

    @Test(arguments: busKinds)
    func `a new agent accepts the states that observers report`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try RawBusClient(address: agent.bus.address)
        let (control, poster) = (
            try RawBusClient(address: agent.bus.address), try RawBusClient(address: agent.bus.address)
        )
        #expect(
            try observer.register(["com.example.a"], state: "suspended", previous: observer.uniqueName).string
                == "suspended"
        )
        // It is in force once the observer has confirmed it.
        #expect(try observer.takeCall("SetState").string == "suspended")
        try poster.post("com.example.a")
        let serial = try control.begin(observer.uniqueName, "foreground")
        #expect(try observer.takeCall("SetState").string == "foreground")
        #expect(try observer.takeCall("Deliver").strings == ["com.example.a"])
        #expect(try control.answer(to: serial).kind == .reply)
    }
}
