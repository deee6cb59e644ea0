// SPDX-License-Identifier: Apache-2.0

/// The observer's half of the lifecycle protocol: whether posts may pass, and how far a change of that has come.
///
/// A value: it is told what happens, and says what is to be done about it, in this order. It has no clock and no socket,
/// so that it runs on a bus as in the simulation. See Documentation/lifecycle-protocol.md.
///
/// What follows the agent's word in the queue of the bus is dropped; the rules are taken off the bus, so that it holds
/// nothing for a program that is not in the foreground, and the program is not woken.
package struct ObserverLifecycle {
    /// How long the agent may take to answer, and how long it may stay away until the gate opens, in milliseconds.
    package static let patience: Int64 = 2_000

    package enum Gate: Equatable, Sendable {
        case open
        case closed
        /// The rules are on their way back; until the bus has them all, posts are dropped.
        case opening
    }

    package enum Event: Sendable {
        /// The bus has let the connection in. Registrations wait for the agent's word from here on.
        ///
        /// - Parameter wasCutOff: whether the connection takes the place of one that the same bus has closed. Posts made
        ///   meanwhile were missed, unless the agent says that it has them all.
        case connected(uniqueName: String, wasCutOff: Bool = false)
        /// The connection is gone, and with it all that was under way.
        case lost
        /// The answer to `findAgent`: who is the agent, or nil if there is none that this program trusts.
        case found(search: Int, agent: String?)
        /// The answer to `register`; nil if the agent has refused, or is gone.
        case registered(agent: String, AgentInterface.Register.Answer?)
        /// Another connection has the agent's name, or nobody.
        case ownerChanged(String)
        case decided(String, by: String)
        case setState(LifecycleState, Call)
        case deliver([String], Call)
        /// A place in the stream, which the agent wanted to read itself: it has read some of what stood before.
        case marked(by: String)
        /// The bus has answered a rule that was put back.
        case ruleAnswered
        /// The answer to `askBarrier`: all that the bus had routed before has come.
        case barrierPassed(Int)
        case deadlinePassed
        /// The program wants to tell the agent something.
        case says(Statement)
        /// The program wants to ask the agent something; ends in `ask` or `fail`.
        case asks(request: Int)
    }

    package enum Effect: Equatable, Sendable {
        /// Have the bus say when the agent's name passes to somebody else.
        case watchAgent
        /// Find out who is the agent, and whether it is to be trusted; ends in `found`.
        ///
        /// - Parameter owner: who is the agent, if that is known.
        case findAgent(search: Int, owner: String?)
        /// Register; ends in `registered`. What is observed, and what is known of the process, is still to be entered.
        case register(agent: String, AgentInterface.Register)
        /// Confirm the registrations that have waited for the agent's word.
        case confirmRegistrations
        case withdrawRules
        /// Send all rules again; each that is sent is counted by ``rulesAreAsked(_:)`` and ends in `ruleAnswered`.
        case putRules
        /// Ask the bus something; ends in `barrierPassed`.
        case askBarrier(Int)
        /// The state is in force.
        case publish(LifecycleState)
        /// The bus has cut the connection off, and nobody knows what was posted meanwhile.
        case noteCutOff
        /// Answer a call of SetState: the change is in force.
        case answer(Call)
        /// Answer a call of Deliver.
        case acknowledge(Call)
        /// Answer a call of somebody who is not the agent.
        case refuse(Call)
        case tell(agent: String, Statement)
        case ask(agent: String, request: Int)
        /// There is no agent to be asked, or the connection is gone.
        case fail(request: Int)
        /// Close the connection, as if it were lost, and make another.
        case disconnect
        /// Say `deadlinePassed` after so many milliseconds; nil for never. It takes the place of an earlier one.
        case setDeadline(Int64?)
    }

    /// A call that is to be answered.
    package struct Call: Equatable, Sendable {
        package let sender: String
        package let serial: UInt32
        package let wantsReply: Bool

        package init(sender: String, serial: UInt32, wantsReply: Bool) {
            self.sender = sender
            self.serial = serial
            self.wantsReply = wantsReply
        }
    }

    /// What the agent is told, without an answer.
    package enum Statement: Equatable, Sendable {
        case observes(names: [String], prefixes: [String])
        case observesNoMore(names: [String], prefixes: [String])
        case followsDesktop(Bool)
    }

    /// Who waits for a change to be in force.
    private enum Waiter {
        case registrations
        case call(Call)
    }

    /// A change under way to a state in which nothing is heard.
    private struct Closing {
        let barrier: Int
        let state: LifecycleState
        let waiters: [Waiter]
    }

    private enum Postponed {
        case statement(Statement)
        case request(Int)
    }

    // MARK: - What there is

    /// Whether posts may pass.
    package private(set) var isOpen = true
    package private(set) var gate = Gate.open
    /// The state in force.
    package private(set) var state = LifecycleState.foreground
    /// What is being changed to, or the state.
    private var aim = LifecycleState.foreground
    /// Whether the agent has yet to say which state a new connection begins in. Nothing is promised to anybody before.
    package private(set) var isEntering = false
    /// The agent's unique name, while there is one and it knows this connection.
    package private(set) var agent: String?
    /// The agent before, which may still be ending.
    private var replacedAgent: String?
    /// Whether the agent is being looked for, or has not yet answered.
    private var isRegistering = true
    private var search = 0
    /// Whom this connection has registered with, until the answer comes.
    private var candidate: String?
    private var ownName = ""
    /// The unique names of this program's connections by which the agent may know it: that of the last registration that
    /// was answered, and those of later ones that were not.
    private var knownNames: [String] = []
    /// More are not remembered.
    private static let knownNameLimit = 8
    /// Who decided the state, in the agent's words. An agent that comes later is told.
    private var decider = AgentInterface.nobody
    /// What the agent believes this to be: it says so when it is something else.
    private var toldDecider = AgentInterface.nobody
    /// Whether posts were made that nobody knows of: an agent died that may have known those made while the program was
    /// suspended, or the bus has cut the connection off.
    private var mayHaveMissedPosts = false
    /// Whether the bus has cut the connection off that this one replaces; until the agent says whether it knows what was
    /// posted meanwhile.
    private var wasCutOff = false
    /// Whether the agent has yet to deliver what it had noted, if only nothing: it ends each resumption with that.
    private var expectsDelivery = false
    /// Whether each name that is observed waits for the gate to open.
    private var waitsWithEverything = false
    /// Whether the agent is reading the stream of this connection, and will end it when it has kept what was there.
    private var isBeingParked = false
    /// The agent that knew this connection when it was lost. It may have parked the program; another one knows nothing
    /// of what was posted then.
    private var formerAgent: String?
    /// Names that were delivered for that reason, and are not to be delivered again when an agent knows of them.
    private var deliveredUnasked: Set<NotifyName> = []
    /// Names to deliver once, which were posted while the program was suspended.
    private var replay = CoalescingQueue<NotifyName>()
    /// What is to be said once the agent knows this connection, or turns out not to be there.
    private var postponed: [Postponed] = []
    private var closings: [Closing] = []
    private var barrier = 0
    /// Rules that are on their way back and have yet to be answered, the barrier behind them, and who waits for both.
    private var unansweredRules = 0
    private var openingBarrier: Int?
    private var openingWaiters: [Waiter] = []
    private var effects: [Effect] = []

    package init() {}

    /// Whether the bus is to have the rules.
    var hasRules: Bool { gate != .closed }

    /// Takes note of what has happened.
    ///
    /// - Parameter names: the names that are observed, but no prefixes. Asked for when each of them is to be delivered.
    /// - Returns: what is to be done, in this order.
    package mutating func handle(_ event: Event, names: () -> [NotifyName]) -> [Effect] {
        take(event, names)
        isOpen = gate == .open && !isEntering
        if isOpen { waitsWithEverything = false }
        defer { effects = [] }
        return effects
    }

    /// Rules were sent, now or because others were refused.
    package mutating func rulesAreAsked(_ count: Int) {
        if gate == .opening { unansweredRules += count }
    }

    /// Whether names that were posted while the program was suspended wait, now or for the gate to open.
    var hasReplay: Bool { !replay.isEmpty }

    /// The next name that was posted while the program was suspended.
    package mutating func takeReplayed() -> NotifyName? { isOpen ? replay.popFirst() : nil }

    private mutating func take(_ event: Event, _ names: () -> [NotifyName]) {
        switch event {
        case .connected(let name, let wasCutOff):
            ownName = name
            isEntering = true
            self.wasCutOff = wasCutOff
            // What was missed is delivered when the rules are in force again, and not before.
            if wasCutOff, gate == .open { gate = .closed }
            effects.append(.watchAgent)
            findAgent(nil)
        case .lost: forgetConnection()
        case .found(let number, let agent):
            // Else the name has passed to another one since.
            guard number == search else { return }
            if let agent { register(agent) } else { registrationEnded(nil, names) }
        case .registered(let agent, let answer):
            if agent == candidate { registrationEnded(answer, names) }
        case .ownerChanged(let owner): ownerChanged(owner)
        case .decided(let text, let sender): decided(text, by: sender)
        case .setState(let state, let call):
            guard call.sender == agent else { return effects.append(.refuse(call)) }
            expectsDelivery = state == .foreground && aim != .background
            change(to: state, [], .call(call), names)
        case .deliver(let names, let call):
            guard call.sender == agent else { return effects.append(.refuse(call)) }
            deliver(names)
            if names.count < ObserverInterface.Deliver.limit { expectsDelivery = false }
            effects.append(.acknowledge(call))
        case .marked(let sender): marked(by: sender)
        case .ruleAnswered:
            unansweredRules = max(0, unansweredRules - 1)
            finishOpening()
        case .barrierPassed(let number): barrierPassed(number)
        case .deadlinePassed:
            agent = nil
            decider = AgentInterface.nobody
            isRegistering = false
            failRequests()
            change(to: .foreground, [], .registrations, names)
        case .says(let statement): say(statement)
        case .asks(let request): ask(request)
        }
    }

    // MARK: - Finding the agent

    private mutating func findAgent(_ owner: String?) {
        isRegistering = true
        replacedAgent = agent ?? candidate ?? replacedAgent
        (agent, candidate) = (nil, nil)
        search += 1
        effects.append(.setDeadline(ObserverLifecycle.patience))
        effects.append(.findAgent(search: search, owner: owner))
    }

    private mutating func decided(_ text: String, by sender: String) {
        guard sender == agent || sender == candidate else { return }
        (decider, toldDecider) = (text, text)
    }

    private mutating func register(_ agent: String) {
        var registration = AgentInterface.Register()
        registration.state = state
        registration.previous = knownNames.last ?? ""
        registration.earlier = knownNames.dropLast()
        registration.decider = decider
        toldDecider = decider
        isRegistering = true
        candidate = agent
        // It says what is observed now.
        postponed.removeAll { if case .statement = $0 { true } else { false } }
        effects.append(.register(agent: agent, registration))
    }

    private mutating func registrationEnded(_ answer: AgentInterface.Register.Answer?, _ names: () -> [NotifyName]) {
        knownNames = [ownName]
        deliveredUnasked = []
        agent = answer == nil ? nil : candidate
        candidate = nil
        if let formerAgent, formerAgent != agent { mayHaveMissedPosts = true }
        // It has parked this program, and goes on holding its names until they are heard here.
        expectsDelivery = answer.map { $0.state == .foreground && $0.isComplete } ?? false
        formerAgent = nil
        if wasCutOff, answer?.isComplete != true {
            mayHaveMissedPosts = true
            effects.append(.noteCutOff)
        }
        wasCutOff = false
        if let answer {
            decider = toldDecider
            effects.append(.setDeadline(nil))
            change(to: answer.state, answer.pending, .registrations, names)
        } else if state == .foreground || aim == .foreground {
            effects.append(.setDeadline(nil))
            change(to: .foreground, [], .registrations, names)
        } else {
            // No agent: as long as one may come back, the state stays.
            close(state, .registrations)
        }
        sayPostponed()
    }

    private mutating func ownerChanged(_ owner: String) {
        if isBeingParked { return abandonStream() }
        let isCovered = gate == .opening && waitsWithEverything
        if (state == .suspended || aim == .suspended || expectsDelivery) && !isCovered { mayHaveMissedPosts = true }
        expectsDelivery = false
        if owner.isEmpty {
            replacedAgent = agent ?? candidate ?? replacedAgent
            agent = nil
            if state != .foreground || aim != .foreground || mayHaveMissedPosts {
                effects.append(.setDeadline(ObserverLifecycle.patience))
            }
        } else if owner != agent {
            findAgent(owner)
        }
    }

    private mutating func forgetConnection() {
        // What the agent has been told nobody knows; the gate is closed, and the next agent decides.
        if let last = closings.last, aim == last.state { publish(aim) }
        if gate == .opening { gate = .closed }
        aim = state
        (closings, openingWaiters, openingBarrier, unansweredRules) = ([], [], nil, 0)
        (isEntering, isBeingParked) = (false, false)
        if candidate != nil, knownNames.count < ObserverLifecycle.knownNameLimit {
            // The agent may know this connection although its answer has not come.
            knownNames.append(ownName)
        }
        formerAgent = agent ?? candidate ?? formerAgent
        (agent, candidate) = (nil, nil)
        isRegistering = true
        search += 1
        failRequests()
        postponed = []
        effects.append(.setDeadline(nil))
        expectsDelivery = false
        if state == .suspended { mayHaveMissedPosts = true }
    }

    // MARK: - Telling the agent

    private mutating func say(_ statement: Statement) {
        waitsWithEverything = false
        if isRegistering || candidate != nil {
            // The agent may have been told what was observed before; it may also answer very late.
            postponed.append(.statement(statement))
        } else if let agent {
            effects.append(.tell(agent: agent, statement))
        }
    }

    private mutating func ask(_ request: Int) {
        if isRegistering {
            postponed.append(.request(request))
        } else if let agent {
            effects.append(.ask(agent: agent, request: request))
        } else {
            effects.append(.fail(request: request))
        }
    }

    private mutating func failRequests() {
        var statements: [Postponed] = []
        for one in postponed {
            switch one {
            case .request(let request): effects.append(.fail(request: request))
            case .statement: statements.append(one)
            }
        }
        postponed = statements
    }

    private mutating func sayPostponed() {
        isRegistering = false
        let all = postponed
        postponed = []
        for one in all {
            switch one {
            case .statement(let statement): say(statement)
            case .request(let request): ask(request)
            }
        }
    }

    // MARK: - Changing

    private mutating func change(
        to new: LifecycleState,
        _ pending: [String],
        _ waiter: Waiter,
        _ names: () -> [NotifyName]
    ) {
        switch new {
        case .foreground:
            deliver(pending)
            if mayHaveMissedPosts { deliverEverything(but: pending, names) }
            open(waiter)
        case .background:
            mayHaveMissedPosts = false
            deliveredUnasked = []
            waitsWithEverything = false
            replay.removeAll()
            close(.background, waiter)
        case .suspended:
            deliveredUnasked = []
            close(.suspended, waiter)
        }
    }

    /// The agent was reading the stream: it ends the connection when it has kept what was there, or it has died.
    private mutating func marked(by sender: String) {
        if sender == agent || sender == candidate {
            isBeingParked = true
        } else if sender == replacedAgent {
            abandonStream()
        }
    }

    /// Posts and answers that this connection waits for have gone with an agent.
    private mutating func abandonStream() {
        isBeingParked = false
        mayHaveMissedPosts = true
        effects.append(.disconnect)
    }

    /// Nobody knows what was posted: rather a notification too many than one too few.
    private mutating func deliverEverything(but delivered: [String], _ names: () -> [NotifyName]) {
        mayHaveMissedPosts = false
        waitsWithEverything = true
        let delivered = Set(delivered.compactMap { try? NotifyName($0) })
        deliveredUnasked = Set(names()).subtracting(delivered)
        for name in deliveredUnasked { _ = replay.enqueue(name) }
    }

    /// Delivers each of these names once, as soon as posts may pass.
    private mutating func deliver(_ names: [String]) {
        for text in names {
            guard let name = try? NotifyName(text), deliveredUnasked.remove(name) == nil else { continue }
            _ = replay.enqueue(name)
        }
    }

    /// Drops all posts from here on. It is in force when the bus holds nothing more for this connection.
    private mutating func close(_ new: LifecycleState, _ waiter: Waiter) {
        aim = new
        if gate != .closed {
            gate = .closed
            effects.append(.withdrawRules)
        }
        barrier += 1
        closings.append(Closing(barrier: barrier, state: new, waiters: openingWaiters + [waiter]))
        (openingWaiters, openingBarrier) = ([], nil)
        effects.append(.askBarrier(barrier))
    }

    /// Lets posts pass again. It is in force when every later post is heard.
    private mutating func open(_ waiter: Waiter) {
        aim = .foreground
        if gate == .open {
            publish(.foreground)
            return finish([waiter])
        }
        openingWaiters.append(waiter)
        guard gate == .closed else { return }
        gate = .opening
        unansweredRules = 0
        effects.append(.putRules)
        barrier += 1
        openingBarrier = barrier
        effects.append(.askBarrier(barrier))
    }

    private mutating func barrierPassed(_ number: Int) {
        if number == openingBarrier {
            openingBarrier = nil
            return finishOpening()
        }
        guard let index = closings.firstIndex(where: { $0.barrier == number }) else { return }
        let closing = closings.remove(at: index)
        if gate == .closed, aim == closing.state { publish(aim) }
        finish(closing.waiters)
        finishEntering()
    }

    private mutating func finishOpening() {
        guard gate == .opening, openingBarrier == nil, unansweredRules == 0 else { return }
        gate = .open
        publish(.foreground)
        let waiters = openingWaiters
        openingWaiters = []
        finish(waiters)
    }

    private mutating func publish(_ new: LifecycleState) {
        guard state != new else { return }
        state = new
        effects.append(.publish(new))
    }

    private mutating func finish(_ waiters: [Waiter]) {
        for waiter in waiters {
            switch waiter {
            case .registrations: finishEntering()
            case .call(let call): effects.append(.answer(call))
            }
        }
    }

    private mutating func finishEntering() {
        guard isEntering else { return }
        isEntering = false
        effects.append(.confirmRegistrations)
    }
}
