// SPDX-License-Identifier: Apache-2.0

/// Whether posts may pass to the observers, and how far a change of that has come.
///
/// What follows the agent's word in the queue of the bus is dropped; the rules are taken off the bus, so that it holds
/// nothing for a program that is not in the foreground, and the program is not woken.
struct LifecycleGate {
    enum Position {
        case open
        case closed
        /// The rules are on their way back; until the bus has them all, posts are dropped.
        case opening
    }

    var position = Position.open
    /// Whether the agent has yet to say which state a new connection begins in. Nothing is promised to anybody before.
    var isEntering = false
    /// Topics that the bus has the rules of, while entering.
    var heldTopics: [Topic] = []
    /// How many rules the bus has yet to answer for.
    var openQuestions = 0
    /// Whether the bus has answered what was asked after the rules.
    var hasPassedBarrier = false
    var whenOpen: [@Sendable (borrowing BusLink) -> Void] = []
    /// Names to deliver once, which were posted while the program was suspended.
    var replay = MergingQueue<NotifyName>()

    var isOpen: Bool { position == .open && !isEntering }
    var hasRules: Bool { position != .closed }

    /// The connection is gone, and what was under way with it. The position stays.
    mutating func forgetTransition() {
        openQuestions = 0
        hasPassedBarrier = false
        whenOpen = []
        heldTopics = []
        isEntering = false
        if position == .opening { position = .open }
    }
}

extension ObservingConnection {
    /// Waits for the agent's word before any registration is confirmed.
    func beginEntering() {
        gate.isEntering = true
    }

    /// Confirms the registrations that waited for the agent's word.
    func finishEntering(on engine: Engine) {
        guard gate.isEntering else { return }
        gate.isEntering = false
        let topics = gate.heldTopics
        gate.heldTopics = []
        activate(topics, on: engine)
    }

    /// Drops all posts from here on. `completion` is called when the bus holds nothing more for this connection.
    func closeGate(on engine: Engine, then completion: @escaping @Sendable (borrowing BusLink) -> Void) {
        if gate.position != .closed {
            withdrawAllRules(on: engine)
            gate.position = .closed
            gate.whenOpen = []
            reach = RuleReach()
            generation += 1
            gate.openQuestions = 0
            // Whoever waits for a registration has it: it will be heard when the gate opens.
            var waiting: [Topic] = []
            engine.registry.settle { table in
                table.forEach { topic in
                    if case .adding = topic.state { waiting.append(topic) }
                    if case .lost = topic.state { waiting.append(topic) }
                }
            }
            activate(waiting, on: engine)
        }
        BusLink(observing: self, engine: engine).callBus("GetId", []) { _, link in
            // Also where the gate was about to open for those who wait, and now does not.
            link.observing.finishEntering(on: link.engine)
            completion(link)
        }
    }

    private func withdrawAllRules(on engine: Engine) {
        if reach.mode != .narrow { withdraw(MatchRule.everything) }
        if reach.hasSpares { withdraw(MatchRule.spares) }
        guard reach.mode != .wide else { return }
        var rules: [String] = []
        engine.registry.settle { table in
            table.forEach { topic in
                if topic.generation == generation { rules += topic.rules }
            }
        }
        withdraw(rules)
    }

    /// Lets posts pass again. `completion` is called when every later post is heard.
    func openGate(on engine: Engine, then completion: @escaping @Sendable (borrowing BusLink) -> Void) {
        guard gate.position != .open else { return completion(BusLink(observing: self, engine: engine)) }
        let isUnderWay = gate.position == .opening
        gate.whenOpen.append(completion)
        if isUnderWay { return }
        gate.position = .opening
        gate.hasPassedBarrier = false
        generation += 1
        let current = generation
        var topics: [Topic] = []
        engine.registry.settle { table in table.forEach { topics.append($0) } }
        for topic in topics { sendRules(of: topic, on: engine) }
        BusLink(observing: self, engine: engine).callBus("GetId", []) { _, link in
            guard link.observing.generation == current else { return }
            link.observing.gate.hasPassedBarrier = true
            link.observing.continueOpeningGate(on: link.engine)
        }
    }

    func continueOpeningGate(on engine: Engine) {
        guard gate.position == .opening, gate.hasPassedBarrier, gate.openQuestions == 0 else { return }
        gate.position = .open
        let completions = gate.whenOpen
        gate.whenOpen = []
        for completion in completions { completion(BusLink(observing: self, engine: engine)) }
    }

    /// Delivers each of these names once, as soon as posts may pass.
    func replay(_ names: [NotifyName]) {
        for name in names { _ = gate.replay.enqueue(name) }
    }

    /// Delivers nothing of what was to be delivered.
    func forgetReplay() {
        gate.replay.removeAll()
    }
}
