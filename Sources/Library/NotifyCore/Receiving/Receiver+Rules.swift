// SPDX-License-Identifier: Apache-2.0

extension Receiver {
    /// Sends the rules of a topic, unless this connection has them.
    func sendRules(of topic: Topic) {
        // The peer tells the relay.
        guard topic.generation != generation, !hearsByRelay else { return }
        guard lifecycle.hasRules else { return activate([topic]) }
        topic.generation = generation
        reach.add(rules: topic.ruleCount)
        if reach.hearsEverything { activate([topic]) }
        guard reach.sendsRules else { return }
        askForRules(of: topic)
        keepSpares()
    }

    /// Asks for the spare rules; whether the bus has them shows when they are needed.
    private func keepSpares() {
        guard reach.asksForSpares() else { return }
        for rule in MatchRule.spares {
            link.connection?.send(.busCall("AddMatch", [.string(rule)], wantsReply: false))
        }
    }

    private func askForRules(of topic: Topic) {
        let rules = topic.rules
        registry.settle { _ in topic.unanswered = rules.count }
        reach.narrows(by: rules.count)
        lifecycle.rulesAreAsked(rules.count)
        for rule in rules { ask(for: rule, of: topic) }
    }

    /// Asks the bus for a rule.
    ///
    /// - Parameter topic: nil if the rule is wide.
    private func ask(for rule: String, of topic: Topic?) {
        let generation = generation
        link.callBus("AddMatch", [.string(rule)]) { [self] answer in
            // It may be about rules that have been taken off since.
            guard generation == self.generation, !answer.isOfLostConnection else { return }
            let outcome = RuleOutcome(answer, by: link.bus.title)
            if let topic { ruleAnswered(for: topic, outcome) } else { wideRuleAnswered(outcome) }
            delegate?.ruleIsAnswered()
        }
    }

    func removeRules(of topic: Topic) {
        guard lifecycle.hasRules, topic.generation == generation else { return }
        topic.generation = 0
        reach.remove(rules: topic.ruleCount)
        if reach.mode != .wide { withdraw(topic.rules) }
        if reach.shouldNarrow { narrow() }
    }

    private func ruleAnswered(for topic: Topic, _ outcome: RuleOutcome) {
        if reach.mode == .narrowing { return narrowRuleAnswered(outcome) }
        switch outcome {
        case .accepted: break
        case .limitReached:
            // The topic waits for the wide rules.
            if reach.mode == .narrow { widen() }
            return
        case .refused(let error):
            topic.wasRefused = true
            registry.settle { _ in
                topic.state = .failed(error)
                if topic.isOwed { unrestored -= 1 }
                topic.isOwed = false
            }
            noteRestored()
        }
        topic.unanswered -= 1
        guard topic.unanswered == 0 else { return }
        guard topic.wasRefused else { return activate([topic]) }
        // It can be registered again, which may already have happened.
        topic.wasRefused = false
        removeRules(of: topic)
        if case .adding = topic.state { sendRules(of: topic) }
    }

    func activate(_ topics: [Topic]) {
        // It is not known yet whether the program may listen at all, or whether the agent or the relay listens for it.
        if lifecycle.holdsConfirmations || awaitsRelay {
            heldTopics += topics
            return
        }
        registry.settle { _ in
            for topic in topics {
                if case .failed = topic.state { continue }
                if topic.isOwed { unrestored -= 1 }
                topic.isOwed = false
                topic.state = .active
                (topic.wasActive, topic.losses) = (true, 0)
            }
        }
        noteRestored()
    }

    func withdraw(_ rules: [String]) {
        for rule in rules { link.connection?.send(.busCall("RemoveMatch", [.string(rule)], wantsReply: false)) }
    }

    // MARK: - Too many names for one rule each

    private func widen() {
        if reach.beginWidening(rules: MatchRule.everything.count) { withdraw(MatchRule.spares) }
        lifecycle.rulesAreAsked(MatchRule.everything.count)
        for rule in MatchRule.everything { ask(for: rule, of: nil) }
    }

    private func wideRuleAnswered(_ outcome: RuleOutcome) {
        let change = reach.changeAnswered(isAccepted: outcome.isAccepted)
        if case .none = change { return }
        let topics = registry.allTopics
        if case .refused = change {
            withdraw(MatchRule.everything)
            let failed = topics.filter { if case .adding = $0.state { true } else { false } }
            // First, so that it can be registered again.
            for topic in failed { removeRules(of: topic) }
            registry.settle { _ in
                for topic in failed { topic.state = .failed(.limitExceeded) }
            }
        } else {
            // Those that are no longer in the table count as registered again.
            unrestored = topics.count { $0.isOwed }
            activate(topics)
            for topic in registry.topicsWithRules where topic.generation == generation { withdraw(topic.rules) }
        }
    }

    private func narrow() {
        reach.beginNarrowing()
        let topics = registry.allTopics
        for topic in topics where topic.generation == generation { askForRules(of: topic) }
        if topics.isEmpty { finishNarrowing(reach.finish()) }
    }

    private func narrowRuleAnswered(_ outcome: RuleOutcome) {
        finishNarrowing(reach.changeAnswered(isAccepted: outcome.isAccepted))
    }

    private func finishNarrowing(_ change: RuleReach.Outcome) {
        switch change {
        case .none: break
        case .changed:
            withdraw(MatchRule.everything)
            // There is room for them now, whatever has been added meanwhile.
            keepSpares()
        case .refused:
            for topic in registry.topicsWithRules where topic.generation == generation { withdraw(topic.rules) }
        }
    }
}

// The effects of the lifecycle.
extension Receiver {
    /// Confirms the registrations that have waited for the agent.
    func confirmHeldTopics() {
        let topics = heldTopics
        heldTopics = []
        activate(topics)
    }

    /// Removes every rule from the bus. Pending registrations succeed: they will be heard when the gate opens.
    func withdrawAllRules() { activate(removeAllRules()) }

    /// Removes every rule from the bus.
    ///
    /// - Returns: the topics whose registration is pending.
    func removeAllRules() -> [Topic] {
        if reach.mode != .narrow { withdraw(MatchRule.everything) }
        if reach.hasSpares { withdraw(MatchRule.spares) }
        var rules: [String] = []
        for topic in registry.topicsWithRules where topic.generation == generation { rules += topic.rules }
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
        return waiting
    }

    /// Sends the rules of every topic again.
    func putAllRules() {
        generation += 1
        heldTopics = []
        let topics = registry.allTopics
        // Those that are no longer in the table count as registered again.
        unrestored = topics.count { $0.isOwed }
        noteRestored()
        for topic in topics { sendRules(of: topic) }
    }
}

/// The bus's reply to AddMatch.
private enum RuleOutcome {
    case accepted, limitReached, refused(NotifyBusError)

    init(_ answer: BusAnswer, by title: String) {
        switch answer {
        case .success: self = .accepted
        case .failure(let fault) where fault.name == "org.freedesktop.DBus.Error.LimitsExceeded": self = .limitReached
        case .failure(let fault): self = .refused(fault.error(of: .failed, by: title))
        }
    }

    var isAccepted: Bool { if case .accepted = self { true } else { false } }
}

extension NotifyBusError {
    fileprivate static let limitExceeded = NotifyBusError(
        .limitExceeded,
        "The bus allows no more match rules, not even one for all names; "
            + "raise max_match_rules_per_connection in its configuration, or observe fewer names."
    )
}
