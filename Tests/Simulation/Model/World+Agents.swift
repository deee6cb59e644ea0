// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// Agents are started, end, and follow one another.
extension World {
    /// The connections for which the bus queues what is meant for an agent.
    var connectionsOfAgents: [Int] {
        [agent?.connection, agent?.predecessor?.connection, estate?.connection].compactMap(\.self)
    }

    /// Whether one agent is just following another in good order.
    var isAgentChanging: Bool { estate != nil || agent.map { $0.isLeaving || !$0.isServing } ?? false }

    func startAgent() {
        let connection = bus.connect(.agent(agents))
        let new = SimulatedAgent(number: agents, connection: connection, newCoordinator)
        agents += 1
        if let agent, agent.isAlive {
            knowledgeIsLost()
            agent.leave(self)
            forgetAgent()
        }
        agent = new
        if let estate {
            self.estate = nil
            new.inherit(estate, self)
        } else {
            bus.write(.requestName(serial: 0), connection)
        }
        // It finds out for itself what it was not told.
        desktopChanges(from: desktop, isNew: true)
        focusMayHaveMoved(isNew: true)
    }

    /// The agent is killed, or what it has left is lost.
    func killAgent() {
        guard agent?.isAlive == true || estate != nil else { return }
        knowledgeIsLost()
        agent?.end(self)
        if let estate { close(estate.connection) }
        estate = nil
        forgetAgent()
    }

    /// The knowledge of an agent is lost.
    func knowledgeIsLost() {
        oracle.agentDied()
        heldStates = [:]
    }

    func forgetAgent() {
        agent = nil
        for process in processes.indices {
            processes[process].isKnownToStand = false
            // Those continue without an agent.
            if mutation != .forgetsNappers { processes[process].isNapping = false }
            // No other process would know that it must continue, unless it is told so.
            if processes[process].isFrozen, estate == nil {
                processes[process].isFrozen = false
                processes[process].isStoppedByOthers = true
            }
        }
    }

    // MARK: - Agents that hand over

    func replaceAgent() {
        if let agent, agent.isAlive, !agent.isLeaving { agent.beginsToLeave(self) }
    }

    /// The agent has handed over. If it could not wait until no change was under way, those programs are as if it had died.
    func isHandedOver(_ estate: Estate) {
        self.estate = estate
        if let agent, !agent.isAtRest {
            let names = Set(estate.heritage.connections.map(\.name))
            let known = bus.connections.compactMap { connection in
                if case .observer(let number) = connection.owner, names.contains(connection.name) {
                    number
                } else {
                    nil
                }
            }
            for observer in observers.indices where !known.contains(observer) { oracle.agentDied(for: observer) }
        }
    }

    /// The bus ends the connection of an agent that has handed over.
    func cutPredecessor(_ readable: Int) {
        guard let connection = estate?.connection ?? agent?.predecessor?.connection, bus[connection].isOpen else {
            return
        }
        knowledgeIsLost()
        bus.disconnect(connection, readable: readable)
    }

    /// What happens in a history in which agents hand over; nil if that is nothing now.
    ///
    /// - Parameter dies: whether they die in the middle of it.
    func succeed(_ random: inout SplitMix, dies: Bool) -> Step? {
        guard isAgentChanging else { return random.chance(20) ? .replaceAgent : nil }
        guard dies, random.chance(12) else { return nil }
        return random.chance(2) ? .killAgent : .cutPredecessor(readable: random.below(4))
    }

    func process(_ id: ProcessID) -> Process { processes[Int(id.pid) - 100] }
}
