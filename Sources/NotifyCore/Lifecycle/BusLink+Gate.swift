// SPDX-License-Identifier: Apache-2.0

// The effects of the lifecycle on match rules.
extension BusLink {
    /// Confirms the registrations that have waited for the agent.
    func confirmHeldTopics() {
        let topics = heldTopics
        heldTopics = []
        activate(topics)
    }

    /// Removes every rule from the bus.
    func withdrawAllRules() {
        if reach.mode != .narrow { withdraw(MatchRule.everything) }
        if reach.hasSpares { withdraw(MatchRule.spares) }
        var rules: [String] = []
        for topic in registry.topicsWithRules where topic.generation == generation { rules += topic.rules }
        // Pending registrations succeed: they will be heard when the gate opens.
        var waiting: [Topic] = []
        registry.settle { table in
            table.forEach { topic in
                // One that was added only now: the agent has not been told, nor the bus.
                guard topic.generation == generation else { return }
                switch topic.state {
                case .adding, .lost: waiting.append(topic)
                case .active, .failed: break
                }
            }
        }
        if reach.mode != .wide { withdraw(rules) }
        reach = RuleReach()
        generation += 1
        activate(waiting)
    }

    /// Sends the rules of every topic again.
    func putAllRules() {
        generation += 1
        heldTopics = []
        var topics: [Topic] = []
        registry.settle { table in table.forEach { topics.append($0) } }
        for topic in topics { sendRules(of: topic) }
    }
}

// Replies to calls of which only sender and serial are known.
extension BusLink {
    func reply(to call: ObserverLifecycle.Call, _ arguments: [BusValue] = []) {
        guard call.wantsReply else { return }
        _ = connection?.send(.reply(to: call.sender, call.serial, arguments))
    }

    func refuse(_ call: ObserverLifecycle.Call, _ fault: BusFault) {
        guard call.wantsReply else { return }
        _ = connection?.send(.error(to: call.sender, call.serial, name: fault.name, fault.message))
    }
}
