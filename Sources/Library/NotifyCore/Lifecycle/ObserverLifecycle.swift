// SPDX-License-Identifier: Apache-2.0

/// The observer's half of the lifecycle protocol: whether posts may pass, and the progress of a change.
///
/// A value: it takes events, and returns effects to be carried out in order. It has no clock and no socket, so it runs
/// on a bus as well as in the simulation. See Documentation/lifecycle-protocol.md.
///
/// Whatever follows the agent's call in the queue of the bus is dropped; the rules are removed from the bus, so that it
/// holds nothing for a program that is not in the foreground, and the program is not woken.
package struct ObserverLifecycle {
    /// How long the agent may take to reply, and how long it may be away before the gate opens, in milliseconds.
    package static let timeLimit: Int64 = 2_000

    /// How long a relay may take. Without it nothing is heard, so that nothing is lost by waiting.
    package static let relayTimeLimit: Int64 = 10_000

    package enum Gate: Equatable, Sendable {
        case open
        case closed
        /// The rules are being restored; until the bus has them all, posts are dropped.
        case opening
    }

    /// Whether posts may pass. Checked for each of them.
    package private(set) var isOpen = true
    private var passage = ObserverGate()
    private var registration = AgentRegistration()
    private var missed = MissedNames()
    /// Whether the bus has cut off the connection that this one replaces; until the agent reports whether it knows what
    /// was posted in the meantime.
    private var wasCutOff = false
    /// Whether the agent is reading the stream of this connection, and will end it once it has kept the content.
    private var isBeingParked = false
    /// Whether the agent is a relay, by which alone posts come.
    private var needsRelay = false
    private var additions = LateAdditions()
    private var effects: [Effect] = []

    package init() {}

    package var gate: Gate { passage.position }
    /// The state in effect.
    package var state: LifecycleState { passage.state }
    /// Whether the agent has yet to report in which state a new connection starts. Until then no registration is
    /// confirmed.
    package var isEntering: Bool { passage.isEntering }
    /// Whether the agent has yet to answer a report of names that were added while the program is suspended.
    package var awaitsAddition: Bool { additions.areAsked }
    /// Whether registrations are to be confirmed only once `confirmRegistrations` says so.
    package var holdsConfirmations: Bool { isEntering || gate == .opening || additions.areWaiting }
    /// The agent's unique name, while there is one and it knows this connection.
    package var agent: String? { registration.agent }
    /// Whether the next registration reports what this agent answers now. It does not if another agent has replaced it and
    /// been registered with.
    package func tellsNextAgent(sayingBy sender: String) -> Bool {
        (registration.agent ?? registration.candidate ?? sender) == sender
    }
    /// Whom this connection has registered with, until the answer comes.
    var candidate: String? { registration.candidate }
    /// Whether the bus should have the rules.
    var hasRules: Bool { gate != .closed }

    /// Handles an event.
    ///
    /// - Parameter names: the observed names, but no prefixes. Requested when each of them is to be delivered.
    /// - Returns: the effects, to be carried out in order.
    package mutating func handle(_ event: Event, names: () -> [NotifyName]) -> [Effect] {
        take(event, names)
        isOpen = gate == .open && !isEntering
        if isOpen { missed.gateIsOpen() }
        defer { effects = [] }
        return effects
    }

    /// What tells two apart: a simulation enters no state twice.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(passage)
        hasher.combine(registration)
        hasher.combine(missed)
        hasher.combine(wasCutOff)
        hasher.combine(isBeingParked)
        hasher.combine(needsRelay)
        hasher.combine(additions)
    }

    /// Rules were sent, now or because others were refused.
    package mutating func rulesAreAsked(_ count: Int) { passage.rulesAreAsked(count) }

    /// Posts whose sender the bus was still asked for when the connection was lost: there will be no answer. Each name
    /// is delivered once, as soon as posts may pass; a spurious notification beats silence.
    package mutating func keep(_ heldBack: [NotifyName]) {
        if !heldBack.isEmpty { missed.keep(heldBack) }
    }

    /// Whether names that were posted while the program did not listen wait, now or for the gate to open.
    var hasReplay: Bool { missed.isWaiting }

    /// The next name that was posted while the program was not listening.
    package mutating func takeReplayed() -> NotifyName? { isOpen ? missed.takeNext() : nil }

    private mutating func take(_ event: Event, _ names: () -> [NotifyName]) {
        switch event {
        case .connected(let name, let wasCutOff, let isOnAnotherBus, let needsRelay):
            self.wasCutOff = wasCutOff
            self.needsRelay = needsRelay
            passage.enter(missesPosts: wasCutOff)
            let timeLimit = needsRelay ? ObserverLifecycle.relayTimeLimit : ObserverLifecycle.timeLimit
            registration.connect(as: name, isOnAnotherBus: isOnAnotherBus, timeLimit: timeLimit, &effects)
        case .lost: forgetConnection()
        case .found(let number, let agent):
            guard registration.isSearching(number) else { return }
            if let agent {
                registration.register(with: agent, in: state, &effects)
            } else {
                registrationEnded(nil, names)
            }
        case .registered(let agent, let answer):
            if agent == registration.candidate { registrationEnded(answer, names) }
        case .ownerChanged(let owner): ownerChanged(owner)
        case .decided(let text, let sender): registration.decided(text, by: sender)
        case .setState(let state, let additions, let call):
            guard call.sender == agent else { return effects.append(.refuse(call)) }
            // The agent has not subscribed to what it has not heard of yet.
            self.additions.isAgentBehind =
                state == .suspended && !needsRelay && registration.hasSaidMore(than: additions)
            if self.additions.isAgentBehind { return effects.append(.postpone(call)) }
            missed.expectDelivery(state == .foreground && passage.aim != .background)
            change(to: state, .call(call), names)
        case .deliver(let names, let call):
            guard call.sender == agent else { return effects.append(.refuse(call)) }
            missed.deliver(names)
            if names.count < ObserverInterface.Deliver.limit { missed.expectDelivery(false) }
            effects.append(.acknowledge(call))
        case .marked(let sender): marked(by: sender)
        case .ruleAnswered: passage.ruleIsAnswered(&effects)
        case .barrierPassed(let number): passage.barrierPassed(number, &effects)
        case .deadlinePassed where registration.agent != nil:
            // It does not say whether it has subscribed to what was added. If it is to suspend the program later, it must.
            if gate == .closed, passage.aim == .suspended { missed.noteUnknown() }
            registration.expectEverything()
            confirmAdditions()
        case .deadlinePassed:
            registration.giveUp(&effects)
            // No agent will report in time what was posted in the meantime.
            if wasCutOff { noteCutOff() }
            goOnAlone(names)
            confirmAdditions()
        case .says(let statement):
            missed.namesHaveChanged()
            say(statement)
        case .additionAnswered(let number):
            guard additions.answered(number) else { return }
            if registration.agent != nil { effects.append(.setDeadline(nil)) }
            effects.append(.confirmRegistrations)
        case .asks(let request): registration.ask(request, &effects)
        }
    }

    // MARK: - Gaining and losing the agent

    private mutating func registrationEnded(_ answer: AgentInterface.Register.Answer?, _ names: () -> [NotifyName]) {
        // An agent to which another one has handed over knows all that the other knew.
        let isHandedOver = answer?.isComplete == true
        if registration.registrationEnded(isAccepted: answer != nil), !isHandedOver { missed.noteUnknown() }
        missed.settleDoubt(isHandedOver: isHandedOver)
        // It has parked this program, and stays subscribed to its names until they are heard here.
        missed.expectDelivery(answer.map { $0.state == .foreground && $0.isComplete } ?? false)
        if wasCutOff, answer?.isComplete != true { noteCutOff() }
        wasCutOff = false
        if let answer {
            effects.append(.setDeadline(nil))
            if answer.state == .foreground { missed.deliver(answer.pending) }
            missed.startCounting()
            change(to: answer.state, deliveringAlso: answer.pending, .registrations, names)
        } else if state == .foreground || passage.aim == .foreground {
            effects.append(.setDeadline(nil))
            goOnAlone(names)
        } else {
            // There is no agent, but as long as one may come back, the state stays.
            passage.close(state, for: .registrations, &effects)
        }
        // The registration has reported what was added before.
        let wereWaiting = additions.areWaiting
        additions.confirm()
        for postponed in registration.endRegistering() {
            switch postponed {
            case .statement(let statement): say(statement)
            case .request(let request): registration.ask(request, &effects)
            }
        }
        if wereWaiting, !additions.areWaiting { effects.append(.confirmRegistrations) }
    }

    /// There is no agent: the program is in the foreground.
    private mutating func goOnAlone(_ names: () -> [NotifyName]) {
        if needsRelay {
            // Missed names are delivered when the program hears again.
            passage.open(for: .registrations, &effects)
        } else {
            change(to: .foreground, .registrations, names)
        }
    }

    private mutating func noteCutOff() {
        wasCutOff = false
        missed.noteUnknown()
        effects.append(.noteCutOff)
    }

    private mutating func ownerChanged(_ owner: String) {
        if isBeingParked { return abandonStream() }
        additions.isAgentBehind = false
        let isSuspended = state == .suspended || passage.aim == .suspended
        missed.agentHasGone(isSuspended: isSuspended, isOpening: gate == .opening)
        // Posts since then are lost, and further ones will be until there is another relay.
        if needsRelay, agent != nil, owner != agent { missed.noteUnknown() }
        if owner.isEmpty, needsRelay {
            registration.find(nil, &effects)
        } else if owner.isEmpty {
            registration.agentHasGone()
            if state != .foreground || passage.aim != .foreground || missed.areUnknown {
                effects.append(.setDeadline(ObserverLifecycle.timeLimit))
            }
        } else if owner != agent {
            additions.agentIsReplaced()
            registration.find(owner, &effects)
        }
    }

    private mutating func forgetConnection() {
        // The next agent to answer knows what was posted since this connection began, not what was before it.
        if wasCutOff { noteCutOff() }
        passage.forgetConnection(&effects)
        // What is posted until the next connection is another post.
        missed.startCounting()
        additions = LateAdditions()
        isBeingParked = false
        registration.forgetConnection(&effects)
        missed.expectDelivery(false)
        if state == .suspended { missed.noteUnknown() }
    }

    // MARK: - Added names

    /// From the moment that the agent wants to suspend the program, additions are confirmed once it has subscribed to them.
    private mutating func say(_ statement: Statement) {
        let isHeld = !needsRelay && (additions.isAgentBehind || passage.aim == .suspended)
        guard case .observes = statement, isHeld else { return registration.say(statement, &effects) }
        switch registration.status {
        case .registering:
            registration.say(statement, &effects)
            additions.awaitRegistration()
        case .registered:
            registration.say(statement, asking: additions.ask(), &effects)
            effects.append(.setDeadline(registration.timeLimit))
        case .alone: break
        }
    }

    private mutating func confirmAdditions() {
        guard additions.areWaiting else { return }
        additions.confirm()
        effects.append(.confirmRegistrations)
    }

    // MARK: - Parking

    /// The agent was reading the stream: it ends the connection once it has kept the content, or it has died.
    private mutating func marked(by sender: String) {
        if registration.knows(sender) {
            isBeingParked = true
        } else if sender == registration.replaced {
            abandonStream()
        }
    }

    /// Posts and replies for which this connection was waiting are lost along with an agent.
    private mutating func abandonStream() {
        isBeingParked = false
        missed.noteUnknown()
        effects.append(.disconnect)
    }

    // MARK: - Changing

    /// - Parameter pending: names that are delivered anyway.
    private mutating func change(
        to new: LifecycleState,
        deliveringAlso pending: [String] = [],
        _ waiter: ObserverGate.Waiter,
        _ names: () -> [NotifyName]
    ) {
        switch new {
        case .foreground:
            missed.makeGood(pending, names)
            passage.open(for: waiter, &effects)
        case .background:
            missed.forgetAll()
            passage.close(.background, for: waiter, &effects)
        case .suspended:
            missed.startCounting()
            passage.close(.suspended, for: waiter, &effects)
        }
    }
}

/// Names that were posted while the program was not listening: those that the agent has noted, or all observed names if
/// it is not known which.
struct MissedNames: Hashable {
    /// Names to deliver once, in this order.
    private var order: [NotifyName] = []
    private var next = 0
    private var waiting: Set<NotifyName> = []
    /// Names that were delivered because what was posted was unknown, and that must not be delivered again if an agent
    /// knows them.
    private var unasked: Set<NotifyName> = []
    /// Whether there may have been posts that are not known: an agent died that may have known those made while the
    /// program was suspended, or the bus has cut the connection off.
    var areUnknown: Bool { isLost || isDoubtful }
    private var isLost = false
    /// Whether an agent has gone that may have known of posts, and the next one has yet to say whether it knows what that
    /// one knew.
    private var isDoubtful = false
    /// Whether the agent has yet to deliver what it has noted, even if that is nothing: every resumption ends with
    /// that.
    private var expectsDelivery = false
    /// Whether every observed name waits for the gate to open.
    private var waitsWithEverything = false

    /// Whether names are waiting to be delivered.
    var isWaiting: Bool { next < order.count }

    /// The next name to deliver.
    mutating func takeNext() -> NotifyName? {
        guard next < order.count else { return nil }
        defer {
            next += 1
            if next == order.count { forgetWaiting() }
        }
        waiting.remove(order[next])
        return order[next]
    }

    private mutating func forgetWaiting() {
        (order, next, waiting) = ([], 0, [])
    }

    // MARK: - What the agent has noted

    mutating func expectDelivery(_ expects: Bool) { expectsDelivery = expects }

    /// Delivers each of these names once, as soon as posts may pass.
    mutating func deliver(_ names: [String]) {
        for text in names {
            guard let name = try? NotifyName(text), unasked.remove(name) == nil else { continue }
            enqueue(name)
        }
    }

    mutating func keep(_ names: [NotifyName]) { names.forEach { enqueue($0) } }

    private mutating func enqueue(_ name: NotifyName) {
        if waiting.insert(name).inserted { order.append(name) }
    }

    // MARK: - Posts that are not known

    mutating func noteUnknown() { isLost = true }

    /// An agent has answered.
    ///
    /// - Parameter isHandedOver: whether it knows what the one before it knew.
    mutating func settleDoubt(isHandedOver: Bool) {
        if isDoubtful, !isHandedOver { isLost = true }
        isDoubtful = false
    }

    /// The agent has gone or been replaced, and with it what it had noted.
    ///
    /// - Parameters:
    ///   - isSuspended: whether posts may have been noted that were not delivered.
    ///   - isOpening: whether the gate is about to open.
    mutating func agentHasGone(isSuspended: Bool, isOpening: Bool) {
        let isCovered = isOpening && waitsWithEverything
        if (isSuspended || expectsDelivery) && !isCovered { isDoubtful = true }
        expectsDelivery = false
    }

    /// A spurious notification beats silence: delivers every name if there may have been posts that are not known.
    mutating func makeGood(_ delivered: [String], _ names: () -> [NotifyName]) {
        guard areUnknown else { return }
        (isLost, isDoubtful) = (false, false)
        waitsWithEverything = true
        unasked = Set(names()).subtracting(delivered.compactMap { try? NotifyName($0) })
        for name in unasked { enqueue(name) }
    }

    /// From now on something else may be missed.
    mutating func startCounting() { unasked = [] }

    /// The observed names differ from those that are waiting.
    mutating func namesHaveChanged() { waitsWithEverything = false }

    mutating func gateIsOpen() { waitsWithEverything = false }

    /// Posts made in the background are never delivered.
    mutating func forgetAll() {
        (isLost, isDoubtful, waitsWithEverything, unasked) = (false, false, false, [])
        forgetWaiting()
    }
}

/// Names that are added while the program is suspended, or about to be: they are confirmed once the agent has subscribed to them.
struct LateAdditions: Hashable {
    /// Whether the agent wanted to suspend the program before it had heard of everything that was added.
    var isAgentBehind = false
    /// The additions that the agent has yet to answer.
    private var unanswered: Set<Int> = []
    private var last = 0
    /// Whether some wait for a registration that will report them.
    private var awaitsRegistration = false

    var areWaiting: Bool { awaitsRegistration || areAsked }
    var areAsked: Bool { !unanswered.isEmpty }

    mutating func awaitRegistration() { awaitsRegistration = true }

    /// The one before need not have taken note of what it has not answered. The next one will hear of that when this program
    /// registers.
    mutating func agentIsReplaced() {
        if areWaiting { (unanswered, awaitsRegistration) = ([], true) }
    }

    /// - Returns: a number for an addition that the agent is to answer.
    mutating func ask() -> Int {
        last += 1
        unanswered.insert(last)
        return last
    }

    /// - Returns: whether it was the last of those that are waiting.
    mutating func answered(_ number: Int) -> Bool {
        unanswered.remove(number) != nil && unanswered.isEmpty && !awaitsRegistration
    }

    /// None of them waits any longer.
    mutating func confirm() { (unanswered, awaitsRegistration) = ([], false) }
}
