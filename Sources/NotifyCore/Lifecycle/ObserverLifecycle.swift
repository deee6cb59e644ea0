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
    /// Whether the agent is being looked for, or has not yet answered.
    private var isRegistering = true
    private var search = 0
    /// Whom this connection has registered with, until the answer comes.
    private var candidate: String?
    private var ownName = ""
    /// The unique name of this connection before the bus or the agent closed it.
    private var previousName = ""
    /// Who decided the state, in the agent's words. An agent that comes later is told.
    private var decider = AgentInterface.nobody
    /// Whether posts were made that nobody knows of: an agent died that may have known those made while the program was
    /// suspended, or the bus has cut the connection off.
    private var mayHaveMissedPosts = false
    /// Whether the bus has cut the connection off that this one replaces; until the agent says whether it knows what was
    /// posted meanwhile.
    private var wasCutOff = false
    /// The agent that knew this connection when it was lost. It may have parked the program; another one knows nothing
    /// of what was posted then.
    private var formerAgent: String?
    /// Names that were delivered for that reason, and are not to be delivered again when an agent knows of them.
    private var deliveredUnasked: Set<String> = []
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
    package mutating func handle(_ event: Event, names: () -> [String]) -> [Effect] {
        take(event, names)
        isOpen = gate == .open && !isEntering
        defer { effects = [] }
        return effects
    }

    /// Rules were sent, now or because others were refused.
    package mutating func rulesAreAsked(_ count: Int) {
        if gate == .opening { unansweredRules += count }
    }

    /// The next name that was posted while the program was suspended.
    package mutating func takeReplayed() -> NotifyName? { isOpen ? replay.popFirst() : nil }

    private mutating func take(_ event: Event, _ names: () -> [String]) {
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
        case .decided(let text, let sender): if sender == agent { decider = text }
        case .setState(let state, let call):
            guard call.sender == agent else { return effects.append(.refuse(call)) }
            change(to: state, [], .call(call), names)
        case .deliver(let names, let call):
            guard call.sender == agent else { return effects.append(.refuse(call)) }
            deliver(names)
            effects.append(.acknowledge(call))
        case .ruleAnswered:
            unansweredRules = max(0, unansweredRules - 1)
            finishOpening()
        case .barrierPassed(let number): barrierPassed(number)
        case .deadlinePassed:
            agent = nil
            decider = AgentInterface.nobody
            sayPostponed()
            change(to: .foreground, [], .registrations, names)
        case .says(let statement): say(statement)
        case .asks(let request): ask(request)
        }
    }

    // MARK: - Finding the agent

    private mutating func findAgent(_ owner: String?) {
        isRegistering = true
        (agent, candidate) = (nil, nil)
        search += 1
        effects.append(.setDeadline(ObserverLifecycle.patience))
        effects.append(.findAgent(search: search, owner: owner))
    }

    private mutating func register(_ agent: String) {
        var registration = AgentInterface.Register()
        registration.state = state
        registration.previous = previousName
        registration.decider = decider
        isRegistering = true
        candidate = agent
        effects.append(.register(agent: agent, registration))
    }

    private mutating func registrationEnded(_ answer: AgentInterface.Register.Answer?, _ names: () -> [String]) {
        previousName = ownName
        agent = answer == nil ? nil : candidate
        candidate = nil
        if let formerAgent, formerAgent != agent { mayHaveMissedPosts = true }
        formerAgent = nil
        if wasCutOff, answer?.isComplete != true {
            mayHaveMissedPosts = true
            effects.append(.noteCutOff)
        }
        wasCutOff = false
        if let answer {
            effects.append(.setDeadline(nil))
            change(to: answer.state, answer.pending, .registrations, names)
        } else if state == .foreground {
            effects.append(.setDeadline(nil))
            change(to: .foreground, [], .registrations, names)
        } else {
            // No agent: as long as one may come back, the state stays.
            close(state, .registrations)
        }
        sayPostponed()
    }

    private mutating func ownerChanged(_ owner: String) {
        if state == .suspended { mayHaveMissedPosts = true }
        if owner.isEmpty {
            agent = nil
            if state != .foreground || aim != .foreground { effects.append(.setDeadline(ObserverLifecycle.patience)) }
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
        isEntering = false
        formerAgent = agent ?? formerAgent
        (agent, candidate) = (nil, nil)
        isRegistering = true
        search += 1
        for case .request(let request) in postponed { effects.append(.fail(request: request)) }
        postponed = []
        effects.append(.setDeadline(nil))
        if state == .suspended { mayHaveMissedPosts = true }
    }

    // MARK: - Telling the agent

    private mutating func say(_ statement: Statement) {
        if isRegistering {
            // The agent may have been told what was observed before.
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
        _ names: () -> [String]
    ) {
        switch new {
        case .foreground:
            deliver(pending)
            if mayHaveMissedPosts {
                mayHaveMissedPosts = false
                let others = Set(names()).subtracting(pending)
                deliveredUnasked = []
                deliver(Array(others))
                deliveredUnasked = others
            }
            open(waiter)
        case .background:
            mayHaveMissedPosts = false
            deliveredUnasked = []
            replay.removeAll()
            close(.background, waiter)
        case .suspended:
            deliveredUnasked = []
            close(.suspended, waiter)
        }
    }

    /// Delivers each of these names once, as soon as posts may pass.
    private mutating func deliver(_ names: [String]) {
        for text in names where deliveredUnasked.remove(text) == nil {
            if let name = try? NotifyName(text) { _ = replay.enqueue(name) }
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
