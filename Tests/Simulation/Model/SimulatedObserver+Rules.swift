// SPDX-License-Identifier: Apache-2.0

import NotifyCore

// The rules on the bus, as `Receiver` keeps them.
extension SimulatedObserver {
    /// The rules that the bus should have, now that nothing is under way.
    var wantedRules: [Int] {
        if gate == .closed { return [] }
        return (reach.mode == .wide ? Subject.wide : subjects) + (reach.hasSpares ? Subject.spares : [])
    }

    func sendRule(_ subject: Int, _ world: World) {
        guard connection != nil, let topic = topics[subject], topic.generation != generation else { return }
        guard gate != .closed else { return activate([subject], world) }
        topics[subject]?.generation = generation
        reach.add(rules: 1)
        if reach.hearsEverything { activate([subject], world) }
        guard reach.sendsRules else { return }
        askForRule(subject, topic.number, world)
        keepSpares(world)
    }

    private func keepSpares(_ world: World) {
        guard let connection, reach.asksForSpares(), world.mutation != .keepsNoSpares else { return }
        for rule in Subject.spares { world.bus.write(.addMatch(rule, serial: 0), connection) }
    }

    private func askForRule(_ subject: Int, _ number: Int, _ world: World) {
        reach.narrows(by: 1)
        lifecycle.rulesAreAsked(1)
        ask(subject, .rule(subject, topic: number, generation: generation), world)
    }

    private func ask(_ rule: Int, _ question: Question, _ world: World) {
        guard let connection else { return }
        lastSerial += 1
        questions.add(lastSerial, question)
        world.bus.write(.addMatch(rule, serial: lastSerial), connection)
    }

    private func withdraw(_ rules: [Int], _ world: World) {
        guard let connection else { return }
        for rule in rules { world.bus.write(.removeMatch(rule), connection) }
    }

    func removeRule(_ subject: Int, _ topic: Topic, _ world: World) {
        guard gate != .closed, topic.generation == generation else { return }
        reach.remove(rules: 1)
        if reach.mode != .wide { withdraw([subject], world) }
        if reach.shouldNarrow { narrow(world) }
    }

    func ruleAnswered(_ subject: Int, _ number: Int, _ isDone: Bool, _ world: World) {
        if reach.mode == .narrowing { return finishNarrowing(reach.changeAnswered(isAccepted: isDone), world) }
        if isDone {
            if topics[subject]?.number == number { activate([subject], world) }
        } else if reach.mode == .narrow {
            widen(world)
        }
    }

    func activate(_ subjects: [Int], _ world: World) {
        let waits = world.mutation == .confirmsUnheld ? isEntering : holdsConfirmations
        if waits, world.mutation != .confirmsAtOnce {
            for subject in subjects {
                heldTopics.append(HeldTopic(subject: subject, number: topics[subject]?.number ?? 0))
            }
            return
        }
        for subject in subjects where topics[subject] != nil {
            topics[subject]?.state = .active
            isConfirmed(subject, world)
        }
    }

    /// A bus that has ended confirms nothing, even before the program has noticed the end.
    func isConfirmed(_ subject: Int, _ world: World) {
        if busNumber == world.bus.number, !world.bus.isAway { world.oracle.confirmed(self, subject) }
    }

    func withdrawRules(_ world: World) {
        if reach.mode != .narrow { withdraw(Subject.wide, world) }
        if reach.hasSpares { withdraw(Subject.spares, world) }
        if reach.mode != .wide { withdraw(subjectsWithRules(world), world) }
        // One that was only entered: the agent has not been told, nor the bus.
        let waiting = sentSubjects.filter { topics[$0]?.state != .active }
        reach = RuleReach(world)
        generation += 1
        activate(waiting, world)
    }

    // MARK: - Too many names for one rule each

    private func widen(_ world: World) {
        if reach.beginWidening(rules: Subject.wide.count) { withdraw(Subject.spares, world) }
        lifecycle.rulesAreAsked(Subject.wide.count)
        if world.mutation == .withdrawsFirst { withdraw(sentSubjects, world) }
        for rule in Subject.wide { ask(rule, .wideRule(generation: generation), world) }
    }

    private var sentSubjects: [Int] { subjects.filter { topics[$0]?.generation == generation } }

    /// Those whose rules the bus may have: also those that are not observed any more, and whose removal has yet to be
    /// carried out.
    private func subjectsWithRules(_ world: World) -> [Int] {
        if world.mutation == .leavesRules { return sentSubjects }
        return sentSubjects
            + commands.compactMap { command in
                if case .remove(let subject, let topic) = command, topic.generation == generation {
                    subject
                } else {
                    nil
                }
            }
    }

    func wideRuleAnswered(_ isDone: Bool, _ world: World) {
        switch reach.changeAnswered(isAccepted: isDone) {
        case .none: break
        case .refused: world.oracle.fail("observer \(number) is allowed no more rules, not even wide ones")
        case .changed:
            if world.mutation != .confirmsNotWide { activate(subjects, world) }
            withdraw(subjectsWithRules(world), world)
        }
    }

    private func narrow(_ world: World) {
        reach.beginNarrowing()
        if world.mutation == .narrowsEarly { withdraw(Subject.wide, world) }
        let sent = sentSubjects
        for subject in sent { askForRule(subject, topics[subject]?.number ?? 0, world) }
        if subjects.isEmpty { finishNarrowing(reach.finish(), world) }
    }

    private func finishNarrowing(_ change: RuleReach.Outcome, _ world: World) {
        switch change {
        case .none: break
        case .changed:
            if world.mutation != .narrowsEarly { withdraw(Subject.wide, world) }
            keepSpares(world)
        case .refused: withdraw(subjectsWithRules(world), world)
        }
    }
}

extension RuleReach {
    /// With few rules, spares are worthwhile at once.
    init(_ world: World) {
        self = world.setting.scarcity.rules == nil ? RuleReach() : RuleReach(sparesThreshold: 2)
    }
}
