// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// Listens to the agent, across restarts of the agent and the bus.
final class AgentWatch: BusPeer {
    enum Event: Sendable {
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
        /// The unique name of the agent, which no other connection can have.
        var agent: String?
        /// Whether the agent of this connection is known.
        var isSettled = false
        /// Whether it ever was; from then on only a signal ends the watch.
        var hasBeenLive = false
    }

    private let bus: NotifyCenter.Bus?
    private let mailbox: Mailbox<Event>
    private var state = State()
    private let rules: [String]

    /// - Parameter wantsFacts: whether to listen also to what the agent learns.
    init(_ mailbox: Mailbox<Event>, on bus: NotifyCenter.Bus?, wantsFacts: Bool) {
        self.mailbox = mailbox
        self.bus = bus
        rules = AgentWatch.rules + (wantsFacts ? [AgentWatch.rule(for: AgentInterface.FactChanged.member)] : [])
    }

    // MARK: - The connection

    var keepsConnection: Bool { state.hasBeenLive }

    func linkIsReady(_ link: BusLink) {
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
        (state.agent, state.isSettled) = (nil, false)
    }

    private func findAgent(_ link: BusLink, startingIt: Bool) {
        link.callBus("GetNameOwner", [.string(AgentInterface.name)]) { answer in
            if case .failure(let fault) = answer, fault.isLossOfBus { return }
            let agent = try? answer.get().first?.string
            if agent != nil || self.keepsConnection {
                self.settle(on: agent)
            } else if startingIt {
                self.startAgent(link)
            } else {
                self.mailbox.put(.failed(.noAgent(on: self.bus)))
            }
        }
    }

    /// An agent is started only here: later it may be away on purpose.
    private func startAgent(_ link: BusLink) {
        link.callBus("StartServiceByName", [.string(AgentInterface.name), .uint32(0)]) { answer in
            // If nothing says how to start it, the user may have started it by hand in the meantime.
            if case .failure(let fault) = answer, self.state.agent == nil {
                self.fail(fault)
            } else {
                self.findAgent(link, startingIt: false)
            }
        }
    }

    private func settle(on agent: String?) {
        state = State(agent: agent, isSettled: true, hasBeenLive: true)
        mailbox.put(.live(hasAgent: agent != nil))
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
        let isAgent = signal.interface == AgentInterface.name && signal.sender == state.agent
        switch signal.member {
        case AgentInterface.FactChanged.member where isAgent:
            let fact = try? FactChange(signal.arguments, at: Clock.timeOfDay)
            mailbox.offer(fact.map { .learned($0) } ?? .nonsense)
        case AgentInterface.StateChanged.member where isAgent:
            let change = try? StateChange(signal.arguments, at: Clock.timeOfDay)
            mailbox.offer(change.map { .changed($0) } ?? .nonsense)
        default:
            signal.arguments.closeDescriptors()
        }
    }

    private func ownerChanged(to owner: String) {
        let hadAgent = state.agent != nil
        state.agent = owner.isEmpty ? nil : owner
        guard state.isSettled, owner.isEmpty == hadAgent else { return }
        mailbox.put(hadAgent ? .agentLost : .agentReturned)
    }

    private static let rules = [
        OwnerChange.rule(of: AgentInterface.name), rule(for: AgentInterface.StateChanged.member),
    ]

    private static func rule(for member: String) -> String {
        "type='signal',sender='\(AgentInterface.name)',path='\(AgentInterface.path)',interface='\(AgentInterface.name)',member='\(member)'"
    }
}
