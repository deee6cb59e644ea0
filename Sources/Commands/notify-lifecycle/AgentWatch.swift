// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// Listens to the agent, across restarts of the agent and the bus.
final class AgentWatch: BusPeer {
    enum Event: Sendable {
        /// The bus has accepted the connection.
        case connected
        /// From now on no change is missed, once there is an agent.
        case live(hasAgent: Bool)
        case changed(StateChange)
        case learned(FactChange)
        /// The agent has announced something invalid.
        case nonsense
        case agentLost, agentReturned
        case busLost
        case failed(CommandFailure)
        /// The agent's reply to `list`; nil if there was none, or an invalid one.
        case listed([AgentInterface.ListEntry]?)
    }

    private struct State {
        /// The unique name of the connection that owns the agent's name, which no other connection can have.
        var owner: String?
        /// Whether that is the agent; nil while the bus has not said whose it is.
        var isAgent: Bool?
        /// What the owner has announced meanwhile.
        var held: [Event] = []
        /// Whether there is an agent, as far as it was reported.
        var hasAgent = false
        /// Whether the agent of this connection is known.
        var isSettled = false
        /// Whether it ever was; from then on only a signal ends the watch.
        var hasBeenLive = false
    }

    private let bus: NotifyCenter.Bus?
    private let mailbox: Mailbox<Event>
    private var state = State()
    private weak var link: BusLink?
    /// Counts the owners of the name. What the bus says of an earlier one does not count.
    private var ownerCount = 0
    private let rules: [String]

    /// The bus answers long before so much is announced, unless an owner wants to use up the memory.
    private static let heldLimit = 65_536

    /// - Parameter wantsFacts: whether to listen also to what the agent learns.
    init(_ mailbox: Mailbox<Event>, on bus: NotifyCenter.Bus?, wantsFacts: Bool) {
        self.mailbox = mailbox
        self.bus = bus
        rules = AgentWatch.rules + (wantsFacts ? [AgentWatch.rule(for: AgentInterface.FactChanged.member)] : [])
    }

    // MARK: - The connection

    var keepsConnection: Bool { state.hasBeenLive }

    func linkIsReady(_ link: BusLink) {
        self.link = link
        mailbox.put(.connected)
        for rule in rules {
            link.callBus("AddMatch", [.string(rule)]) { answer in
                if case .failure(let fault) = answer { self.fail(fault) }
            }
        }
        findAgent(link, startingIt: !keepsConnection)
    }

    func linkIsLost(_ error: NotifyBusError) {
        if !state.hasBeenLive {
            mailbox.put(.failed(CommandFailure(error)))
        } else if state.isSettled {
            mailbox.put(.busLost)
        }
        state = State(hasBeenLive: state.hasBeenLive)
        ownerCount += 1
    }

    private func findAgent(_ link: BusLink, startingIt: Bool) {
        link.callBus("GetNameOwner", [.string(AgentInterface.name)]) { answer in
            if case .failure(let fault) = answer, fault.isLossOfBus { return }
            if let owner = try? answer.get().first?.string {
                self.consider(owner, link, startingIt: startingIt)
            } else if self.keepsConnection {
                self.settle(on: nil, isAgent: false)
            } else if startingIt {
                self.startAgent(link)
            } else {
                self.mailbox.put(.failed(.noAgent(on: self.bus)))
            }
        }
    }

    /// Settles on the owner of the name, which is the agent unless it is another user's.
    private func consider(_ owner: String, _ link: BusLink, startingIt: Bool) {
        let count = ownerCount
        link.checkAgent(owner) { check in
            switch check {
            case .failure(let fault) where fault.isLossOfBus: return
            case _ where count != self.ownerCount: self.findAgent(link, startingIt: startingIt)
            case .success: self.settle(on: owner, isAgent: true)
            case .failure where self.keepsConnection: self.settle(on: owner, isAgent: false)
            case .failure(let fault): self.fail(fault)
            }
        }
    }

    /// An agent is started only here: later it may be away on purpose.
    private func startAgent(_ link: BusLink) {
        link.callBus("StartServiceByName", [.string(AgentInterface.name), .uint32(0)]) { answer in
            // If nothing says how to start it, the user may have started it by hand in the meantime.
            if case .failure(let fault) = answer, self.state.owner == nil {
                self.fail(fault)
            } else {
                self.findAgent(link, startingIt: false)
            }
        }
    }

    private func settle(on owner: String?, isAgent: Bool) {
        state = State(owner: owner, isAgent: isAgent, hasAgent: isAgent, isSettled: true, hasBeenLive: true)
        mailbox.put(.live(hasAgent: isAgent))
    }

    private func fail(_ fault: BusFault) {
        // That is reported anyway.
        if fault.isLossOfBus { return }
        mailbox.put(.failed(CommandFailure(fault, to: "StartServiceByName", on: bus)))
    }

    // MARK: - Messages

    func handle(_ call: BusCall) -> Bool { false }

    func handle(_ signal: BusSignal) {
        if let change = OwnerChange(signal) {
            signal.arguments.closeDescriptors()
            if change.name == AgentInterface.name { ownerChanged(to: change.owner) }
            return
        }
        // Anyone can send a signal to a single connection, regardless of its match rules.
        let mayCount =
            signal.interface == AgentInterface.name && signal.sender == state.owner && state.isAgent != false
        switch signal.member {
        case AgentInterface.FactChanged.member where mayCount:
            let fact = try? FactChange(signal.arguments, at: Clock.timeOfDay)
            announced(fact.map { .learned($0) } ?? .nonsense)
        case AgentInterface.StateChanged.member where mayCount:
            let change = try? StateChange(signal.arguments, at: Clock.timeOfDay)
            announced(change.map { .changed($0) } ?? .nonsense)
        default:
            signal.arguments.closeDescriptors()
        }
    }

    private func announced(_ event: Event) {
        if state.isAgent == true {
            mailbox.offer(event)
        } else if state.isSettled, state.held.count < AgentWatch.heldLimit {
            state.held.append(event)
        }
    }

    private func ownerChanged(to owner: String) {
        ownerCount += 1
        (state.owner, state.isAgent, state.held) = (owner.isEmpty ? nil : owner, nil, [])
        guard state.isSettled else { return }
        if owner.isEmpty { return report(hasAgent: false) }
        let count = ownerCount
        link?.checkAgent(owner) { check in
            guard count == self.ownerCount else { return }
            if case .failure(let fault) = check, fault.isLossOfBus { return }
            let isAgent = if case .success = check { true } else { false }
            self.report(hasAgent: isAgent)
            if isAgent { self.state.held.forEach(self.mailbox.offer) }
            (self.state.isAgent, self.state.held) = (isAgent, [])
        }
    }

    private func report(hasAgent: Bool) {
        if hasAgent != state.hasAgent { mailbox.put(hasAgent ? .agentReturned : .agentLost) }
        state.hasAgent = hasAgent
    }

    private static let rules = [
        OwnerChange.rule(of: AgentInterface.name), rule(for: AgentInterface.StateChanged.member),
    ]

    private static func rule(for member: String) -> String {
        "type='signal',sender='\(AgentInterface.name)',path='\(AgentInterface.path)',interface='\(AgentInterface.name)',member='\(member)'"
    }
}
