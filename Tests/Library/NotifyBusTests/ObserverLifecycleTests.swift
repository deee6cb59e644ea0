// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import NotifyCore

/// The observer's half of the protocol, event by event: what the simulation has not, such as relays, and what it does not
/// count, such as times.
@Suite struct ObserverLifecycleTests {
    private typealias Effect = ObserverLifecycle.Effect
    private typealias Answer = AgentInterface.Register.Answer

    /// An observer of `com.example.a`, and what happens to it.
    private struct Scene {
        var half = ObserverLifecycle()

        mutating func take(_ event: ObserverLifecycle.Event) -> [Effect] { half.handle(event) { ["com.example.a"] } }

        /// Everything that was missed, as far as it may be delivered.
        mutating func takeReplayed() -> [NotifyName] {
            var names: [NotifyName] = []
            while let name = half.takeReplayed() { names.append(name) }
            return names
        }

        mutating func connect(as name: String = ":1.1", needsRelay: Bool = false, wasCutOff: Bool = false) -> [Effect] {
            take(
                .connected(
                    uniqueName: name,
                    wasCutOff: wasCutOff,
                    isOnAnotherBus: false,
                    needsRelay: needsRelay
                )
            )
        }

        /// An agent is found and answers.
        mutating func register(with agent: String, search: Int, _ state: LifecycleState = .foreground) -> [Effect] {
            _ = take(.found(search: search, agent: agent))
            return take(.registered(agent: agent, Answer(state: state, pending: [])))
        }
    }

    private func call(_ serial: UInt32, from sender: String = ":1.5") -> ObserverLifecycle.Call {
        ObserverLifecycle.Call(sender: sender, serial: serial, wantsReply: true)
    }

    private static let statement = ObserverLifecycle.Statement.observes(names: ["com.example.b"], prefixes: [])

    @Test func `it waits two seconds for an agent, and ten for a relay`() {
        var scene = Scene()
        #expect(scene.connect() == [.watchAgent, .setDeadline(2_000), .findAgent(search: 1, owner: nil)])
        #expect(scene.half.isEntering && !scene.half.isOpen && scene.half.holdsConfirmations)
        #expect(scene.take(.deadlinePassed) == [.confirmRegistrations])
        #expect(scene.half.isOpen && !scene.half.holdsConfirmations)
        var relayed = Scene()
        #expect(
            relayed.connect(needsRelay: true)
                == [.watchAgent, .setDeadline(10_000), .findAgent(search: 1, owner: nil)]
        )
        #expect(relayed.take(.deadlinePassed) == [.confirmRegistrations])
    }

    @Test func `without an agent it is at once as if there were none`() {
        var scene = Scene()
        _ = scene.connect()
        // Only the newest search counts.
        #expect(scene.take(.found(search: 9, agent: nil)).isEmpty)
        #expect(scene.take(.found(search: 1, agent: nil)) == [.setDeadline(nil), .confirmRegistrations])
        #expect(scene.half.isOpen && scene.half.agent == nil)
        #expect(scene.take(.asks(request: 4)) == [.fail(request: 4)])
        #expect(scene.take(.says(Self.statement)).isEmpty)
    }

    @Test func `what is said and asked too early waits for the agent's answer, but not for a lost connection`() {
        var scene = Scene()
        _ = scene.connect()
        #expect(scene.take(.asks(request: 1)).isEmpty)
        _ = scene.take(.found(search: 1, agent: ":1.5"))
        #expect(scene.half.candidate == ":1.5" && scene.half.agent == nil)
        #expect(scene.take(.says(.followsDesktop(true))).isEmpty)
        // Another connection's answer is none.
        #expect(scene.take(.registered(agent: ":1.6", Answer(state: .suspended, pending: []))).isEmpty)
        #expect(
            scene.take(.registered(agent: ":1.5", Answer(state: .foreground, pending: []))) == [
                .setDeadline(nil), .confirmRegistrations, .ask(agent: ":1.5", request: 1),
                .tell(agent: ":1.5", .followsDesktop(true)),
            ]
        )
        #expect(scene.half.agent == ":1.5" && scene.half.candidate == nil)
        // Once is enough.
        var again = scene
        _ = again.take(.ownerChanged(":1.6"))
        #expect(
            again.register(with: ":1.6", search: 2) == [.setDeadline(nil)]
        )
        #expect(scene.take(.asks(request: 2)) == [.ask(agent: ":1.5", request: 2)])
        #expect(scene.take(.ownerChanged(":1.6")) == [.setDeadline(2_000), .findAgent(search: 2, owner: ":1.6")])
        #expect(scene.take(.asks(request: 3)).isEmpty)
        #expect(scene.take(.lost) == [.fail(request: 3), .setDeadline(nil)])
    }

    @Test func `only the agent changes the state and delivers`() {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        let (stranger, agent) = (call(1, from: ":1.6"), call(2))
        #expect(scene.take(.setState(.background, additions: 0, stranger)) == [.refuse(stranger)])
        #expect(scene.take(.deliver(["com.example.a"], stranger)) == [.refuse(stranger)])
        #expect(!scene.half.hasReplay && scene.half.state == .foreground)
        #expect(scene.take(.deliver(["com.example.a", "", "com.example.a"], agent)) == [.acknowledge(agent)])
        #expect(scene.takeReplayed() == ["com.example.a"])
        #expect(scene.take(.setState(.background, additions: 0, agent)) == [.withdrawRules, .askBarrier(1)])
        #expect(!scene.half.isOpen && !scene.half.hasRules && scene.half.state == .foreground)
        #expect(scene.take(.barrierPassed(1)) == [.publish(.background), .answer(agent)])
        #expect(scene.half.state == .background)
    }

    @Test func `what is added is reported, and an agent that has not heard of it may not suspend the program yet`() {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        #expect(scene.take(.says(Self.statement)) == [.tell(agent: ":1.5", Self.statement)])
        #expect(scene.take(.setState(.suspended, additions: 0, call(1))) == [.postpone(call(1))])
        // From now on it answers what is added, and that is confirmed then.
        #expect(
            scene.take(.says(Self.statement))
                == [.tell(agent: ":1.5", Self.statement, asking: 1), .setDeadline(2_000)]
        )
        #expect(scene.half.holdsConfirmations)
        #expect(scene.take(.additionAnswered(1)) == [.setDeadline(nil), .confirmRegistrations])
        #expect(!scene.half.holdsConfirmations)
        #expect(scene.take(.setState(.suspended, additions: 2, call(2))) == [.withdrawRules, .askBarrier(1)])
        #expect(scene.take(.setState(.background, additions: 0, call(3))) == [.askBarrier(2)])
    }

    /// A program that is suspended, and waits for the agent's answer to an addition.
    private func sceneThatAdds() -> Scene {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.setState(.suspended, additions: 0, call(1)))
        _ = scene.take(.barrierPassed(1))
        _ = scene.take(.says(Self.statement))
        return scene
    }

    @Test func `an addition that a replaced agent has not answered is confirmed by the next registration`() {
        var scene = sceneThatAdds()
        _ = scene.take(.ownerChanged(":1.6"))
        // The bus says that there will be no answer.
        #expect(scene.take(.additionAnswered(1)).isEmpty)
        #expect(scene.half.holdsConfirmations)
        #expect(scene.register(with: ":1.6", search: 2, .suspended).contains(.confirmRegistrations))
        #expect(!scene.half.holdsConfirmations)
    }

    @Test
    func `a program on its way to the foreground, or from there, opens its gate if the next agent is gone at once`() {
        for isLeaving in [false, true] {
            var scene = Scene()
            _ = scene.connect()
            _ = scene.register(with: ":1.5", search: 1)
            _ = scene.take(.setState(.suspended, additions: 0, call(1)))
            if !isLeaving {
                _ = scene.take(.barrierPassed(1))
                _ = scene.take(.setState(.foreground, additions: 0, call(2)))
            }
            _ = scene.take(.ownerChanged(":1.6"))
            _ = scene.take(.found(search: 2, agent: nil))
            #expect(scene.half.gate == .opening)
            _ = scene.take(.barrierPassed(2))
            #expect(scene.half.isOpen && scene.half.state == .foreground)
        }
    }

    @Test func `who is refused still says which connections the agent may know`() {
        func names(_ effects: [Effect]) -> [String] {
            guard case .register(_, let registration)? = effects.first else { return [] }
            return registration.earlier + [registration.previous]
        }
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.lost)
        _ = scene.connect(as: ":1.2", wasCutOff: true)
        #expect(names(scene.take(.found(search: 3, agent: ":1.5"))) == [":1.1"])
        _ = scene.take(.registered(agent: ":1.5", nil))
        _ = scene.take(.ownerChanged(":1.5"))
        #expect(names(scene.take(.found(search: 4, agent: ":1.5"))) == [":1.1", ":1.2"])
        _ = scene.take(.registered(agent: ":1.5", Answer(state: .foreground, pending: [])))
        _ = scene.take(.lost)
        _ = scene.connect(as: ":1.3", wasCutOff: true)
        #expect(names(scene.take(.found(search: 6, agent: ":1.5"))) == [":1.2"])
        // An agent that does not answer in time may have heard of the first, or of the newest.
        for number in 4..<60 {
            _ = scene.take(.lost)
            _ = scene.connect(as: ":1.\(number)", wasCutOff: true)
            let known = names(scene.take(.found(search: 2 * number, agent: ":1.5")))
            #expect(known.first == ":1.2" && known.last == ":1.\(number - 1)" && known.count <= 32, "\(known)")
        }
    }

    // MARK: - Relays

    @Test func `a relay need not hear of what is added before it suspends the program`() {
        var scene = Scene()
        _ = scene.connect(needsRelay: true)
        #expect(scene.register(with: ":1.5", search: 1) == [.setDeadline(nil), .confirmRegistrations])
        #expect(scene.take(.says(Self.statement)) == [.tell(agent: ":1.5", Self.statement)])
        #expect(scene.take(.setState(.suspended, additions: 0, call(1))) == [.withdrawRules, .askBarrier(1)])
        #expect(scene.take(.barrierPassed(1)) == [.publish(.suspended), .answer(call(1))])
        #expect(scene.take(.says(Self.statement)) == [.tell(agent: ":1.5", Self.statement)])
        #expect(!scene.half.holdsConfirmations)
    }

    @Test func `when a relay is back, each name is delivered once, since posts were not heard meanwhile`() {
        var scene = Scene()
        _ = scene.connect(needsRelay: true)
        _ = scene.register(with: ":1.5", search: 1)
        // It says so again: nothing is missed.
        #expect(scene.take(.ownerChanged(":1.5")).isEmpty)
        #expect(scene.take(.ownerChanged("")) == [.setDeadline(10_000), .findAgent(search: 2, owner: nil)])
        #expect(scene.take(.deadlinePassed).isEmpty)
        #expect(scene.half.isOpen && scene.takeReplayed().isEmpty)
        #expect(scene.take(.ownerChanged(":1.9")) == [.setDeadline(10_000), .findAgent(search: 3, owner: ":1.9")])
        #expect(scene.register(with: ":1.9", search: 3) == [.setDeadline(nil)])
        #expect(scene.takeReplayed() == ["com.example.a"])
        // So it is if another one takes its place at once.
        var direct = Scene()
        _ = direct.connect(needsRelay: true)
        _ = direct.register(with: ":1.5", search: 1)
        _ = direct.take(.ownerChanged(":1.9"))
        _ = direct.register(with: ":1.9", search: 2)
        #expect(direct.takeReplayed() == ["com.example.a"])
        // The first relay of a connection has missed nothing.
        var other = Scene()
        _ = other.connect(needsRelay: true)
        #expect(other.take(.ownerChanged(":1.5")) == [.setDeadline(10_000), .findAgent(search: 2, owner: ":1.5")])
        _ = other.register(with: ":1.5", search: 2)
        #expect(other.takeReplayed().isEmpty)
    }

    @Test func `a suspended program whose relay stays away is in the foreground`() {
        var scene = Scene()
        _ = scene.connect(needsRelay: true)
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.setState(.suspended, additions: 0, call(1)))
        _ = scene.take(.barrierPassed(1))
        _ = scene.take(.ownerChanged(""))
        #expect(scene.take(.deadlinePassed) == [.putRules, .askBarrier(2)])
        #expect(scene.half.gate == .opening)
        #expect(scene.take(.barrierPassed(2)) == [.publish(.foreground), .confirmRegistrations])
        #expect(scene.half.isOpen && scene.takeReplayed().isEmpty)
    }

    @Test func `what an agent knew that another one has replaced is made good, unless it is back`() {
        for agent in [":1.5", ":1.6"] {
            var scene = Scene()
            _ = scene.connect()
            _ = scene.register(with: ":1.5", search: 1)
            _ = scene.take(.lost)
            _ = scene.connect()
            _ = scene.register(with: agent, search: 3)
            #expect(scene.half.hasReplay == (agent == ":1.6"))
        }
    }

    @Test(
        arguments: [(.suspended, false, true), (.suspended, true, false), (.background, false, false)]
            as [(LifecycleState, Bool, Bool)]
    )
    func `an agent that goes before it has handed over what was missed is made good`(
        state: LifecycleState,
        hasDelivered: Bool,
        isMissing: Bool
    ) {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        for (number, state) in [(1, state), (2, .foreground)] as [(Int, LifecycleState)] {
            let call = call(UInt32(number))
            _ = scene.take(.setState(state, additions: 0, call))
            #expect(scene.take(.barrierPassed(number)).contains(.answer(call)))
        }
        if hasDelivered { _ = scene.take(.deliver([], call(3))) }
        // Another one may come, for two seconds.
        #expect(scene.take(.ownerChanged("")) == (isMissing ? [.setDeadline(2_000)] : []))
        _ = scene.take(.deadlinePassed)
        #expect(scene.takeReplayed() == (isMissing ? ["com.example.a"] : []))
    }

    @Test func `what is added while an agent is slow is made good after suspension, but not after the background`() {
        for state in [LifecycleState.suspended, .background] {
            var scene = Scene()
            _ = scene.connect()
            _ = scene.register(with: ":1.5", search: 1)
            for (number, state) in [(1, state), (2, .foreground)] as [(Int, LifecycleState)] {
                let call = call(UInt32(number))
                _ = scene.take(.setState(state, additions: 0, call))
                _ = scene.take(.barrierPassed(number))
                if number == 1 {
                    _ = scene.take(.says(Self.statement))
                    _ = scene.take(.deadlinePassed)
                }
            }
            #expect(scene.takeReplayed() == (state == .suspended ? ["com.example.a"] : []))
        }
    }

    @Test func `on another bus a former agent's name means nothing`() {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.ownerChanged(":1.6"))
        var other = scene
        #expect(scene.take(.marked(by: ":1.5")) == [.disconnect])
        _ = other.take(.lost)
        _ = other.take(.connected(uniqueName: ":1.1", wasCutOff: false, isOnAnotherBus: true))
        #expect(other.take(.marked(by: ":1.5")).isEmpty)
    }

    @Test(arguments: ["", ":1.6"])
    func `an agent that goes while it reads the stream takes posts along, also if another comes`(next: String) {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.ownerChanged(""))
        if !next.isEmpty { _ = scene.take(.ownerChanged(next)) }
        #expect(scene.take(.marked(by: ":1.5")) == [.disconnect])
        _ = scene.take(.lost)
        _ = scene.connect(as: ":1.2")
        _ = scene.take(.deadlinePassed)
        #expect(scene.takeReplayed() == ["com.example.a"])
    }

    @Test func `what is said before the agent is found is reported with the registration, and not again`() {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.take(.says(Self.statement))
        let effects = scene.register(with: ":1.5", search: 1)
        #expect(!effects.contains { if case .tell = $0 { true } else { false } })
    }

    @Test func `that the bus has cut it off is reported once, when no agent can say any more what was missed`() {
        // No agent answers in time; or the connection is lost once more before that.
        for event in [ObserverLifecycle.Event.deadlinePassed, .lost] {
            var scene = Scene()
            #expect(!scene.connect(wasCutOff: true).contains(.noteCutOff))
            #expect(scene.take(event).contains(.noteCutOff))
            #expect(!scene.take(.lost).contains(.noteCutOff))
        }
        var known = Scene()
        _ = known.connect(wasCutOff: true)
        _ = known.take(.found(search: 1, agent: ":1.5"))
        let answer = Answer(state: .foreground, pending: [], isComplete: true)
        #expect(!known.take(.registered(agent: ":1.5", answer)).contains(.noteCutOff))
    }

    /// No agent said what was posted before this connection, so each name was delivered.
    private func makeMadeGood() -> Scene {
        var scene = Scene()
        _ = scene.connect(wasCutOff: true)
        _ = scene.take(.found(search: 1, agent: nil))
        #expect(scene.take(.barrierPassed(1)).contains(.confirmRegistrations))
        #expect(scene.takeReplayed() == ["com.example.a"])
        return scene
    }

    @Test func `what was delivered because nothing was known is not delivered again when an agent knows it`() {
        var scene = makeMadeGood()
        _ = scene.take(.ownerChanged(":1.5"))
        _ = scene.take(.found(search: 2, agent: ":1.5"))
        _ = scene.take(.registered(agent: ":1.5", Answer(state: .foreground, pending: ["com.example.a"])))
        #expect(scene.takeReplayed().isEmpty)
        // What it knows from now on was posted after that.
        _ = scene.take(.deliver(["com.example.a"], call(1)))
        #expect(scene.takeReplayed() == ["com.example.a"])
    }

    @Test(arguments: [false, true])
    func `what was delivered because nothing was known is delivered again if it is posted after that`(
        isComplete: Bool
    ) {
        var scene = makeMadeGood()
        _ = scene.take(.lost)
        _ = scene.connect(as: ":1.2", wasCutOff: true)
        _ = scene.take(.found(search: 3, agent: ":1.5"))
        let answer = Answer(state: .foreground, pending: ["com.example.a"], isComplete: isComplete)
        _ = scene.take(.registered(agent: ":1.5", answer))
        #expect(scene.take(.barrierPassed(2)).contains(.confirmRegistrations))
        #expect(scene.takeReplayed() == ["com.example.a"])
    }

    @Test func `an addition that is not answered in time is confirmed, and the agent must know it before it suspends`()
    {
        var scene = sceneThatAdds()
        #expect(scene.half.holdsConfirmations)
        #expect(scene.take(.deadlinePassed) == [.confirmRegistrations])
        #expect(!scene.half.holdsConfirmations)
        #expect(scene.take(.setState(.suspended, additions: 0, call(2))) == [.postpone(call(2))])
        #expect(scene.take(.setState(.suspended, additions: 1, call(3))) == [.askBarrier(2)])
    }

    @Test func `an agent that answers late is asked nothing more, and what it believes is passed on`() {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.decided("person", by: ":1.5"))
        _ = scene.take(.ownerChanged(":1.6"))
        _ = scene.take(.found(search: 2, agent: ":1.6"))
        _ = scene.take(.asks(request: 1))
        #expect(scene.take(.deadlinePassed).contains(.fail(request: 1)))
        let effects = scene.take(.registered(agent: ":1.6", Answer(state: .foreground, pending: [])))
        #expect(effects == [.setDeadline(nil)])
        _ = scene.take(.ownerChanged(":1.7"))
        guard case .register(_, let registration)? = scene.take(.found(search: 3, agent: ":1.7")).first else {
            return #expect(Bool(false))
        }
        #expect(registration.decider == "person")
    }

    @Test func `if the agent stays away, what it decided counts no longer`() {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.decided("person", by: ":1.5"))
        _ = scene.take(.setState(.suspended, additions: 0, call(1)))
        _ = scene.take(.barrierPassed(1))
        _ = scene.take(.ownerChanged(""))
        _ = scene.take(.deadlinePassed)
        _ = scene.take(.ownerChanged(":1.6"))
        guard case .register(_, let registration)? = scene.take(.found(search: 2, agent: ":1.6")).first else {
            return #expect(Bool(false))
        }
        #expect(registration.decider == AgentInterface.nobody)
    }

    @Test func `nothing is left of missed names that were delivered`() {
        var missed = MissedNames()
        missed.keep(["com.example.a", "com.example.b"])
        #expect(missed.takeNext() == "com.example.a" && missed.takeNext() == "com.example.b")
        #expect(missed.takeNext() == nil && missed == MissedNames())
    }

    @Test func `an agent that goes while the gate opens is made good if nothing waits for it`() {
        var missed = MissedNames()
        missed.agentHasGone(isSuspended: true, isOpening: true)
        #expect(missed.areUnknown)
    }

    @Test func `additions wait for a registration until they are confirmed`() {
        var additions = LateAdditions()
        additions.awaitRegistration()
        #expect(additions.areWaiting)
        additions.confirm()
        #expect(!additions.areWaiting)
    }

    // MARK: - The gate

    /// A suspended program that is told to go on.
    private func makeOpening() -> Scene {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.setState(.suspended, additions: 0, call(1)))
        _ = scene.take(.barrierPassed(1))
        #expect(scene.take(.setState(.foreground, additions: 0, call(2))) == [.putRules, .askBarrier(2)])
        return scene
    }

    @Test func `the gate opens when the bus has answered for every rule, also for one that was asked for meanwhile`() {
        var scene = makeOpening()
        scene.half.rulesAreAsked(2)
        #expect(scene.take(.ruleAnswered).isEmpty && scene.take(.barrierPassed(2)).isEmpty)
        scene.half.rulesAreAsked(1)
        #expect(scene.take(.ruleAnswered).isEmpty && !scene.half.isOpen)
        #expect(scene.take(.ruleAnswered).contains(.answer(call(2))) && scene.half.isOpen)
        // Rules that are asked for while the program hears posts keep no gate shut.
        scene.half.rulesAreAsked(1)
        _ = scene.take(.setState(.suspended, additions: 0, call(3)))
        _ = scene.take(.setState(.foreground, additions: 0, call(4)))
        _ = scene.take(.barrierPassed(4))
        #expect(scene.half.isOpen)
    }

    @Test func `a call that waits for the gate to open is answered once`() {
        var scene = makeOpening()
        #expect(scene.take(.barrierPassed(2)).contains(.answer(call(2))))
        _ = scene.take(.setState(.suspended, additions: 0, call(3)))
        #expect(scene.take(.barrierPassed(3)) == [.publish(.suspended), .answer(call(3))])
    }

    @Test func `if the connection is lost while the gate opens, the rules are set on the next one`() {
        var scene = makeOpening()
        _ = scene.take(.lost)
        #expect(scene.half.gate == .closed)
        _ = scene.connect()
        #expect(scene.register(with: ":1.5", search: 3).contains(.putRules))
        #expect(scene.half.gate == .opening)
    }

    @Test func `what is asked while there is no connection waits for the next agent`() {
        var scene = Scene()
        _ = scene.connect()
        _ = scene.register(with: ":1.5", search: 1)
        _ = scene.take(.lost)
        #expect(scene.take(.asks(request: 7)).isEmpty)
        _ = scene.connect()
        #expect(scene.register(with: ":1.6", search: 3).contains(.ask(agent: ":1.6", request: 7)))
    }
}
