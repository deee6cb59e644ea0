// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// A world on its way through a scope, and how often something has been done to it.
struct Situation: Explorable {
    let scope: Scope
    let world: World
    /// How often each move of the scope was made.
    private(set) var spent = SIMD16<UInt8>.zero

    struct Choice {
        let step: Step
        /// The move that it is; nil if it was under way.
        var move: Int?
    }

    init(_ scope: Scope, mutation: Mutation?, isNoted: Bool) {
        self.scope = scope
        world = World(scope.setting, mutation: mutation, isNoted: isNoted, standsStill: true)
        for step in scope.prelude { world.take(step) }
        concludeStep()
        world.notes = []
    }

    private init(copying other: Situation) {
        scope = other.scope
        world = World(copying: other.world)
        spent = other.spent
    }

    var failure: String? { world.failure }
    var notes: [String] { world.notes }

    var copy: Situation { Situation(copying: self) }

    /// Everything that can happen now, in an order that only the state determines.
    var choices: [Choice] {
        var enabled: [Step] = []
        world.collect(&enabled)
        if enabled.isEmpty, world.nextMoment != nil { enabled.append(.time) }
        let isAtWork = !enabled.isEmpty
        if world.agentWaitsForBus, !world.isAgentChanging, scope.calm(after: spent).keepsAgent {
            enabled.removeAll { $0 == .agent || $0 == .news }
        }
        var choices = enabled.map { Choice(step: $0) }
        // A process that was stopped from outside continues some time.
        for (number, process) in world.processes.enumerated() where process.isStoppedByOthers {
            choices.append(Choice(step: .go(process: number), move: -1))
        }
        if world.bus.isAway { choices.append(Choice(step: .startBus, move: -1)) }
        for (number, move) in scope.moves.enumerated() {
            for step in move.steps(after: spent[number]) where world.allows(step, isAtWork: isAtWork) {
                choices.append(Choice(step: step, move: number))
            }
        }
        return choices
    }

    /// Takes a step, and at once what may as well happen at once: see ``World/takeWhole(_:)``.
    ///
    /// - Returns: how many steps were taken.
    @discardableResult
    mutating func take(_ choice: Choice) -> Int {
        if let move = choice.move, move >= 0 { spent[move] += 1 }
        let steps = world.takeWhole(choice.step, scope.calm(after: spent))
        concludeStep()
        return steps
    }

    private func concludeStep() {
        guard world.failure == nil else { return }
        world.normalize()
        guard world.isAtRest else { return }
        if world.nextMoment != nil { return world.checkBeforeTime() }
        world.check()
        world.normalizeAtRest()
    }

    static func isUnderWay(_ choice: Choice) -> Bool { choice.move == nil }

    var fingerprint: Fingerprint {
        var hasher = Hasher()
        hasher.combine(spent)
        world.hash(into: &hasher)
        return Fingerprint(hasher)
    }
}

extension World {
    /// Takes a step, and those after it that may as well come at once, since no order of other steps between them leads
    /// anywhere else:
    ///
    /// - The bus takes the first message that a program has written, unless a promise has changed with the step, or there
    ///   were messages before it. Whatever else could happen before it takes the message, could happen before the step.
    /// - A person reads an answer when it has come: this is the first moment at which it promises something.
    /// - The agent reads what has come if nothing else can reach it, and observers posts and answers of the bus: see
    ///   ``Calm``. Their messages may then wait for the bus, which is as if they had waited.
    func takeWhole(_ step: Step, _ calm: Calm) -> Int {
        var steps = 1
        let writer = writer(of: step, calm).flatMap { bus[$0].isOpen && bus.isIdle($0) ? $0 : nil }
        let (registrations, contracts) = (oracle.registrations, oracle.contracts)
        take(step)
        if let writer, failure == nil, bus[writer].isOpen, !bus.isIdle(writer),
            isOutside(step) || oracle.registrations == registrations && oracle.contracts == contracts
        {
            steps += 1
            take(.route(writer))
        }
        while failure == nil, let next = immediateStep(calm) {
            steps += 1
            take(next)
        }
        return steps
    }

    private func immediateStep(_ calm: Calm) -> Step? {
        if let person = controls.indices.first(where: { !bus[controls[$0]].inbox.isEmpty }) { return .control(person) }
        if readsAtOnce(calm), let agent, !bus[agent.connection].inbox.isEmpty { return .agent }
        return observers.indices.first { readsAtOnce($0, calm) }.map { .observer($0) }
    }

    /// Whether nothing but messages can reach the agent.
    private func readsAtOnce(_ calm: Calm) -> Bool {
        guard calm.isAgentUndisturbed, !isAgentChanging, let agent, agent.isAlive, agent.news.isEmpty,
            agent.drains.isEmpty
        else {
            return false
        }
        if setting.hasDesktop || setting.pendingLimit != nil || setting.busStartsAgents || bus.isAway { return false }
        return processes.allSatisfy { !$0.isStopped && !$0.isKnownToStand && !$0.hasEnded }
            && places.allSatisfy { $0.connection.map { bus[$0].isOpen } ?? false }
    }

    /// Whether what an observer reads next is a post, or an answer of the bus while its gate is open, and nothing but
    /// messages can reach it.
    private func readsAtOnce(_ number: Int, _ calm: Calm) -> Bool {
        let (place, observer) = (places[number], observers[number])
        guard calm.areObserversUndisturbed, !setting.hasDesktop, !setting.scarcity.slowCallbacks,
            observer.commands.isEmpty,
            !place.hasEnded, !processes[place.process].isStopped, let connection = place.connection,
            bus[connection].isOpen,
            let message = bus[connection].inbox.first
        else { return false }
        switch message {
        case .post: return true
        case .replied, .failed: return observer.lifecycle.isOpen
        default: return false
        }
    }

    /// Whose messages are written in a step, if the bus may take the first at once.
    private func writer(of step: Step, _ calm: Calm) -> Int? {
        switch step {
        // Messages of an agent may still be on their way when the next one has replaced it.
        case .agent, .news: calm.keepsAgent && !isAgentChanging ? agent?.connection : nil
        case .observer(let number), .carryOut(let number): places[number].connection
        // Messages that are lost with a poster's connection have not been read by the bus.
        case .post(let poster, _):
            setting.scarcity.socket == nil && !setting.scarcity.restartsBus ? posters[poster].connection : nil
        case .change(_, _, _, let person), .changeOne(_, _, let person), .changeApplication(_, _, let person),
            .release(_, let person), .releaseApplication(let person), .releaseAll(let person):
            setting.scarcity.restartsBus ? nil : controls[person]
        default: nil
        }
    }

    /// Whether a poster or a person begins something. Its changes to the promises hold from when the bus knows it.
    private func isOutside(_ step: Step) -> Bool {
        switch step {
        case .post, .change, .changeOne, .changeApplication, .release, .releaseApplication, .releaseAll: true
        default: false
        }
    }

    /// Whether the bus has yet to take what the agent has written before. Whatever it reads next it may as well read
    /// afterwards, as no program sees it earlier.
    var agentWaitsForBus: Bool {
        guard let agent, !setting.hasDesktop, setting.pendingLimit == nil else { return false }
        return !bus.isIdle(agent.connection)
    }

    /// Whether nothing is under way, or would be if nothing were stopped.
    var isAtRest: Bool {
        if bus.isAway || processes.contains(where: \.isStoppedByOthers) { return false }
        var enabled: [Step] = []
        collect(&enabled)
        return enabled.isEmpty
    }

    /// Whether a step would change anything now.
    ///
    /// - Parameter isAtWork: whether something is under way.
    func allows(_ step: Step, isAtWork: Bool) -> Bool {
        switch step {
        case .change(let process, _, _, _), .release(let process, _):
            bus.agent != nil && !processes[process].hasEnded
        case .changeOne(let observer, _, _): bus.agent != nil && observers[observer].connection != nil
        case .changeApplication, .releaseApplication, .releaseAll: bus.agent != nil
        case .observe(let observer, _), .report(let observer, _), .slow(let observer): !hasEndedOrStopped(observer)
        case .cancel(let number):
            registrations.indices.contains(number) && !registrations[number].isCancelled
                && !hasEndedOrStopped(registrations[number].observer)
        case .stop(let process, _): !processes[process].isStopped && !processes[process].hasEnded
        case .kill(let process): !processes[process].hasEnded
        case .cut(let observer, _): observers[observer].connection.map { bus[$0].isOpen } ?? false
        case .follow(let observer, let follows):
            !hasEndedOrStopped(observer) && observers[observer].followsDesktop != follows
        case .setNameState(let observer, let name, _):
            !hasEndedOrStopped(observer) && observers[observer].connection != nil && observers[observer].isActive(name)
        case .lock(let locks): desktop.isLocked != locks
        case .sleep(let sleeps): desktop.isAsleep != sleeps
        case .focus(let source, let focus): desktop.focus[source] != focus
        case .endAgent: agent?.isAlive == true
        case .killAgent: agent?.isAlive == true || estate != nil
        case .replaceAgent: agent?.isAlive == true && agent?.isLeaving == false
        case .cutPredecessor:
            (estate?.connection ?? agent?.predecessor?.connection).map { bus[$0].isOpen } ?? false
        case .startAgent: !bus.isAway && estate == nil
        case .endBus, .post: !bus.isAway
        case .cutPoster(let number): posters[number].connection.map { bus[$0].isOpen } ?? false
        case .endPoster(let number): posters[number].deadline == nil
        // Otherwise it passes anyway.
        case .time: isAtWork && nextMoment != nil
        default: true
        }
    }
}
