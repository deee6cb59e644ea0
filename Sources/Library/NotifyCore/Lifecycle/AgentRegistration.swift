// SPDX-License-Identifier: Apache-2.0

/// A program's relation to the agent: the search for it, the registration, and what is to be reported to it.
struct AgentRegistration: Hashable {
    typealias Effect = ObserverLifecycle.Effect

    /// Where the program stands with an agent.
    enum Status { case registering, registered, alone }

    enum Postponed: Hashable {
        case statement(ObserverLifecycle.Statement)
        case request(Int)
    }

    /// The agent's unique name, while there is one and it knows this connection.
    private(set) var agent: String?
    /// The agent with which this connection is registering, until it replies.
    private(set) var candidate: String?
    /// How long the agent may take to answer, in milliseconds.
    private(set) var timeLimit = ObserverLifecycle.timeLimit
    /// The previous agent, which may still be terminating.
    private(set) var replaced: String?
    /// The agent that knew this connection when it was lost, or an empty string if that was on another bus. It may have
    /// parked the program; another one knows nothing of what was posted then.
    private var former: String?
    /// Whether the agent is being looked for, or has not yet replied.
    private var isRegistering = true
    private var search = 0
    private var ownName = ""
    /// The unique names of this program's connections by which the agent may know it: that of the last registration
    /// that was accepted, and those of later ones that were not.
    private var knownNames: [String] = []
    /// More are not remembered.
    private static let knownNameLimit = 32
    /// Who decided on the state, in the agent's words. It is reported to a later agent.
    private var decider = AgentInterface.nobody
    /// What the agent believes this to be: a difference is reported to it.
    private var toldDecider = AgentInterface.nobody
    /// What to report once the agent knows this connection, or turns out not to exist.
    private var postponed: [Postponed] = []
    /// How many reports of added names the agent was sent since the registration, and how many up to the last that it
    /// was not asked to answer.
    private var saidCount: UInt32 = 0
    private var unansweredCount: UInt32 = 0

    /// Whether there is an agent, or about to be.
    func knows(_ sender: String) -> Bool { sender == agent || sender == candidate }

    // MARK: - Finding the agent

    /// - Parameter isOnAnotherBus: whether the previous connection was to another bus.
    mutating func connect(as name: String, isOnAnotherBus: Bool, timeLimit: Int64, _ effects: inout [Effect]) {
        ownName = name
        if isOnAnotherBus {
            // The names of that bus may be those of others here. Its own replaces none, but says that it is not new.
            if !knownNames.isEmpty { knownNames = [name] }
            replaced = nil
            if former != nil { former = "" }
        }
        self.timeLimit = timeLimit
        effects.append(.watchAgent)
        find(nil, &effects)
    }

    /// - Parameter owner: the agent, if known.
    mutating func find(_ owner: String?, _ effects: inout [Effect]) {
        isRegistering = true
        replaced = agent ?? candidate ?? replaced
        (agent, candidate) = (nil, nil)
        search += 1
        effects.append(.setDeadline(timeLimit))
        effects.append(.findAgent(search: search, owner: owner))
    }

    /// Whether this search is current, and not for an agent that has since been replaced.
    func isSearching(_ number: Int) -> Bool { number == search }

    mutating func register(with agent: String, in state: LifecycleState, _ effects: inout [Effect]) {
        var registration = AgentInterface.Register()
        registration.state = state
        registration.previous = knownNames.last ?? ""
        registration.earlier = knownNames.dropLast()
        registration.decider = decider
        toldDecider = decider
        isRegistering = true
        candidate = agent
        (saidCount, unansweredCount) = (0, 0)
        // The registration reports what is observed now.
        postponed.removeAll { if case .statement = $0 { true } else { false } }
        effects.append(.register(agent: agent, registration))
    }

    /// The agent has replied, has refused, or does not exist.
    ///
    /// - Returns: whether another agent may have known what this program missed.
    mutating func registrationEnded(isAccepted: Bool) -> Bool {
        if isAccepted { knownNames = [ownName] } else { noteUnanswered() }
        agent = isAccepted ? candidate : nil
        candidate = nil
        if isAccepted { decider = toldDecider }
        defer { former = nil }
        return former != nil && former != agent
    }

    mutating func decided(_ text: String, by sender: String) {
        if knows(sender) { (decider, toldDecider) = (text, text) }
    }

    // MARK: - Losing the agent

    /// There is no agent.
    mutating func agentHasGone() {
        replaced = agent ?? candidate ?? replaced
        agent = nil
    }

    /// The agent has been away for too long.
    mutating func giveUp(_ effects: inout [Effect]) {
        agent = nil
        decider = AgentInterface.nobody
        isRegistering = false
        failRequests(&effects)
    }

    mutating func forgetConnection(_ effects: inout [Effect]) {
        if candidate != nil { noteUnanswered() }
        former = agent ?? candidate ?? former
        (agent, candidate) = (nil, nil)
        isRegistering = true
        search += 1
        failRequests(&effects)
        postponed = []
        effects.append(.setDeadline(nil))
    }

    /// The agent may know this connection although it has not said so. And it may have refused it, and keep what was posted
    /// for an earlier one.
    private mutating func noteUnanswered() {
        guard knownNames.last != ownName else { return }
        // It knows the last one that it has heard of: most likely the first, if it is stopped, or else one of the newest.
        if knownNames.count == AgentRegistration.knownNameLimit { knownNames.remove(at: 1) }
        knownNames.append(ownName)
    }

    // MARK: - Reporting to the agent

    var status: Status {
        // The agent may have learnt what was observed before; it may also reply very late.
        if isRegistering || candidate != nil { return .registering }
        return agent == nil ? .alone : .registered
    }

    /// - Parameter number: if not nil, the agent is to answer.
    mutating func say(
        _ statement: ObserverLifecycle.Statement,
        asking number: Int? = nil,
        _ effects: inout [Effect]
    ) {
        if status == .registering {
            postpone(statement)
        } else if let agent {
            effects.append(.tell(agent: agent, statement, asking: number))
            guard case .observes = statement else { return }
            saidCount &+= 1
            if number == nil { unansweredCount = saidCount }
        }
    }

    /// Reports of added names go together: the agent refuses a connection that has too many calls pending.
    private mutating func postpone(_ statement: ObserverLifecycle.Statement) {
        if case .observes(let names, let prefixes) = statement,
            case .statement(.observes(let otherNames, let otherPrefixes))? = postponed.last,
            names.count + prefixes.count + otherNames.count + otherPrefixes.count <= RelayReports.limit
        {
            postponed.removeLast()
            postponed.append(.statement(.observes(names: otherNames + names, prefixes: otherPrefixes + prefixes)))
        } else {
            postponed.append(.statement(statement))
        }
    }

    /// The agent lacks whatever it has not taken note of, even if it was to answer that.
    mutating func expectEverything() { unansweredCount = saidCount }

    /// Whether the agent, which has taken note of so many reports of added names, lacks one that it need not answer.
    func hasSaidMore(than count: UInt32) -> Bool { count < unansweredCount }

    mutating func ask(_ request: Int, _ effects: inout [Effect]) {
        if isRegistering {
            postponed.append(.request(request))
        } else if let agent {
            effects.append(.ask(agent: agent, request: request))
        } else {
            effects.append(.fail(request: request))
        }
    }

    /// - Returns: what is to be said and asked now.
    mutating func endRegistering() -> [Postponed] {
        isRegistering = false
        defer { postponed = [] }
        return postponed
    }

    private mutating func failRequests(_ effects: inout [Effect]) {
        var statements: [Postponed] = []
        for one in postponed {
            switch one {
            case .request(let request): effects.append(.fail(request: request))
            case .statement: statements.append(one)
            }
        }
        postponed = statements
    }
}
