// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Runs the observer's half of the lifecycle protocol on a connection: passes events to the ``ObserverLifecycle``, and
/// carries out its effects.
///
/// `@unchecked Sendable`: the variables are touched only by the thread that reads; `states` and `nameStates` have locks
/// of their own.
final class LifecyclePeer: BusPeer, @unchecked Sendable {
    /// A question to the agent, pending until it can be asked.
    private struct Request {
        let ask: (_ agent: String) -> Void
        let fail: (NotifyBusError) -> Void
        /// Asks it once more, on the next connection; nil if it was asked too often.
        let askAgain: (() -> Void)?
    }

    private unowned let link: BusLink
    /// The state that others see, and those who follow its changes.
    let states = LifecycleStates()
    /// The states of names that this program has set.
    let nameStates = NameStates()
    /// Whether others can be heard by a relay alone; as far as that is known.
    let relayed = RelayStanding()
    let contact = Monitor(AgentContact.unknown)
    private(set) var deadline: MonotonicTime?
    /// Where the program registers.
    private var service = LifecycleService.agent
    private var requests: [Int: Request] = [:]
    private var lastRequest = 0
    /// Those that wait for the next connection: perhaps the last one has ended only because the agent had parked the program.
    private var held: [(askAgain: () -> Void, fail: (NotifyBusError) -> Void)] = []
    /// Whether the bus has accepted the connection, and whether it had accepted the one that is lost and none was attempted
    /// since.
    private var isConnected = false
    private var isReturning = false
    /// What the relay has yet to be told of what is observed, and how often that began again.
    private var reports = RelayReports()
    private var reportsCount = 0
    /// What was added since the agent was last told of some, if it has yet to answer that: an agent refuses a connection
    /// that has too many calls pending, and with wide rules, or while the program is suspended, nothing else slows down one
    /// that adds thousands in a row.
    private var untold = RelayReports.Batch()
    private var isAnswerDue = false
    /// Why requests fail while the loss of the connection is being handled.
    private var loss: NotifyBusError?

    init(_ link: BusLink) { self.link = link }

    var keepsConnection: Bool { states.isFollowed || states.current == .suspended || !held.isEmpty }

    // MARK: - Incoming messages

    func linkIsReady(_ link: BusLink) {
        let needsRelay = link.bus.passage == .relay
        service = needsRelay ? .relay : .agent
        link.hearsByRelay = needsRelay
        contact.withLock { $0 = .asked }
        (isConnected, isReturning) = (true, false)
        run(
            .connected(
                uniqueName: link.uniqueName,
                wasCutOff: link.wasCutOff,
                isOnAnotherBus: link.isOnAnotherBus,
                needsRelay: needsRelay
            )
        )
        let waiting = held
        held = []
        for question in waiting { question.askAgain() }
    }

    func linkIsLost(_ error: NotifyBusError) {
        (isConnected, isReturning) = (false, isConnected)
        if !isReturning { failHeld(error) }
        // The agent that may have parked the program was not subscribed to these.
        link.lifecycle.keep(untold.names.compactMap { try? NotifyName($0) })
        (untold, isAnswerDue) = (RelayReports.Batch(), false)
        loss = error
        run(.lost)
        loss = nil
    }

    func linkIsClosed() {
        let waiting = requests.values
        requests = [:]
        for request in waiting { request.fail(.closed) }
        failHeld(.closed)
    }

    private func failHeld(_ error: NotifyBusError) {
        let waiting = held
        held = []
        for question in waiting { question.fail(error) }
    }

    func deadlineHasPassed() {
        deadline = nil
        if link.lifecycle.agent == nil {
            goWithoutRelay()
            contact.withLock { if $0 == .asked { $0 = .silent } }
        }
        run(.deadlinePassed)
    }

    func ruleIsAnswered() {
        guard link.lifecycle.gate == .opening else { return }
        run(.ruleAnswered)
    }

    func namesHaveChanged(names: [String], prefixes: [String], added: Bool) {
        if !added { nameStates.forget(names) }
        let isAnswerDue = isAnswerDue && link.reach.hearsEverything && link.lifecycle.isOpen
        if added, isAnswerDue && prefixes.isEmpty || link.lifecycle.awaitsAddition {
            return untold.add(RelayReports.Batch(names: names, prefixes: prefixes))
        }
        tellUntold()
        let statement: ObserverLifecycle.Statement =
            added ? .observes(names: names, prefixes: prefixes) : .observesNoMore(names: names, prefixes: prefixes)
        run(.says(statement))
    }

    /// Reports what was added meanwhile, which the agent must know before anything else.
    private func tellUntold() {
        while !untold.isEmpty {
            let batch = untold.take(RelayReports.limit)
            run(.says(.observes(names: Array(batch.names), prefixes: Array(batch.prefixes))))
        }
    }

    func handle(_ signal: BusSignal) {
        if let change = OwnerChange(signal) {
            signal.arguments.closeDescriptors()
            if change.name == service.name { run(.ownerChanged(change.owner)) }
            return
        }
        switch signal.member {
        case AgentInterface.Decided.member where signal.interface == service.name:
            guard let decided = try? AgentInterface.Decided(signal.arguments) else { return }
            run(.decided(decided.value, by: signal.sender))
        default:
            signal.arguments.closeDescriptors()
        }
    }

    /// Strangers are answered, but no more while the bus has a lot to take.
    func refuses(_ call: BusCall.Head) -> Bool {
        call.wantsReply && call.sender != link.lifecycle.agent && !link.mayAnswerStrangers
    }

    func handle(_ call: BusCall) -> Bool {
        guard call.path == ObserverInterface.path, call.interface == ObserverInterface.name else { return false }
        let caller = ObserverLifecycle.Call(sender: call.sender, serial: call.serial, wantsReply: call.wantsReply)
        // A stranger's message need not be understood.
        let isAgent = call.sender == link.lifecycle.agent
        do throws(ArgumentError) {
            switch call.member {
            case ObserverInterface.SetState.member where isAgent:
                let message = try ObserverInterface.SetState(call.arguments)
                // The agent is told what was added before it may suspend the program.
                if let commands = link.registry.takeRuleCommands() {
                    link.run(commands)
                }
                tellUntold()
                run(.setState(message.state, additions: message.additions, caller))
            case ObserverInterface.Deliver.member where isAgent:
                run(.deliver(try ObserverInterface.Deliver(call.arguments).value, caller))
            case ObserverInterface.KeepStates.member where isAgent:
                keep(try ObserverInterface.KeepStates(call.arguments).states)
                link.reply(to: caller)
            case ObserverInterface.DeliverPosts.member where isAgent && service == .relay:
                link.receive(try ObserverInterface.DeliverPosts(call.arguments))
                link.reply(to: caller)
            case ObserverInterface.Mark.member:
                _ = try ObserverInterface.Mark(call.arguments)
                run(.marked(by: call.sender))
            case _ where isAgent:
                return false
            default:
                call.arguments.closeDescriptors()
                link.refuse(caller, .accessDenied("Only the lifecycle agent may do this."))
            }
        } catch {
            link.refuse(caller, error.fault(for: call.member))
        }
        return true
    }

    /// The next agent learns these from this connection, if this agent dies.
    private func keep(_ states: [AgentInterface.NameStateEntry]) {
        for state in states {
            guard let name = try? NotifyName(state.name), !link.registry.topics(of: [.name(name)]).isEmpty else {
                continue
            }
            nameStates.note(NameStates.Entry(value: state.number, stamp: state.stamp), of: name)
        }
    }

    // MARK: - Reports by the program

    /// Reports which state the program itself wants to be in.
    func report(
        _ state: LifecycleState,
        then completion: @escaping (Result<Void, NotifyBusError>) -> Void
    ) {
        ask(AgentInterface.Report(state)) { answer in
            switch answer {
            case .success: completion(.success(()))
            case .failure(.unreachable(let error)): completion(.failure(error))
            case .failure(.refused(let fault)):
                let isLate = fault.name == AgentInterface.ErrorName.timedOut
                completion(.failure(NotifyBusError(isLate ? .timedOut : .failed, fault.message)))
            }
        }
    }

    /// Calls a method of the agent, once the agent knows this connection.
    func ask<Question: ProtocolCall>(
        _ question: Question,
        then completion: @escaping (Result<Question.Answer, AgentError>) -> Void
    ) {
        ask(question) { answer, _ in completion(answer) }
    }

    /// - Parameters:
    ///   - tries: how often to ask. An agent that is being replaced leaves without an answer, perhaps before the bus has said
    ///     who is next; and one that has parked the program ends its connection.
    ///   - completion: also gets the agent that has answered; none if nobody was asked.
    private func ask<Question: ProtocolCall>(
        _ question: Question,
        tries: Int = 4,
        then completion:
            @escaping (Result<Question.Answer, AgentError>, _ agent: String) -> Void
    ) {
        let fail: (NotifyBusError) -> Void = { completion(.failure(.unreachable($0)), "") }
        let askAgain: (() -> Void)? =
            tries > 1 ? { [self] in ask(question, tries: tries - 1, then: completion) } : nil
        // This alone is no reason to connect to the bus.
        guard link.descriptor >= 0 else {
            if let askAgain, isReturning, link.isReconnecting { return held.append((askAgain, fail)) }
            return fail(link.lossError ?? .disconnected)
        }
        tellUntold()
        lastRequest += 1
        requests[lastRequest] = Request(
            ask: { [self] agent in
                link.call(question, to: agent, of: service) { [self] answer in
                    if let askAgain, case .failure(let fault) = answer {
                        if fault.isOfLostConnection, isConnected { return held.append((askAgain, fail)) }
                        let isReplaced = fault.name == BusFault.noReply || link.lifecycle.agent != agent
                        if fault.saysGone, !fault.isOfLostConnection, isReplaced { return askAgain() }
                    }
                    let reason = answer.isOfLostConnection ? link.lossError ?? .disconnected : noAgent
                    completion(answer.mapError { $0.saysGone ? .unreachable(reason) : .refused($0) }, agent)
                }
            },
            fail: fail,
            askAgain: askAgain
        )
        run(.asks(request: lastRequest))
    }

    /// Sets the state of a name, and remembers it for the next agent.
    func setState(
        _ value: UInt64,
        of name: NotifyName,
        then completion: @escaping (Result<Void, AgentError>) -> Void
    ) {
        ask(AgentInterface.SetNameState(name: name.string, value: value)) { [self] answer, agent in
            guard case .success(let accepted) = answer else { return completion(answer.map { _ in }) }
            // The next agent has been registered with before this was known: it must be asked as well.
            guard link.lifecycle.tellsNextAgent(sayingBy: agent) else {
                return setState(value, of: name, then: completion)
            }
            nameStates.note(NameStates.Entry(value: value, stamp: accepted.value), of: name)
            completion(.success(()))
        }
    }

    /// Reports whether the program wants to follow the desktop. A later agent learns it from the registration.
    func followDesktop(_ follows: Bool) {
        tellUntold()
        run(.says(.followsDesktop(follows)))
    }

    // MARK: - Effects

    private func run(_ event: ObserverLifecycle.Event) {
        let registry = link.registry
        let effects = link.lifecycle.handle(event) { registry.namesHeard }
        for effect in effects { perform(effect) }
    }

    // The callbacks below refer to this object strongly, and the connection that keeps the questions also keeps this
    // object. A weak reference would move its reference count elsewhere, where LeakSanitizer finds no pointer to it.
    private func perform(_ effect: ObserverLifecycle.Effect) {
        switch effect {
        case .watchAgent: link.callBus("AddMatch", [.string(OwnerChange.rule(of: service.name))])
        case .findAgent(let search, let owner): findAgent(search, owner)
        case .register(let agent, let registration): register(agent, registration)
        case .confirmRegistrations: link.confirmHeldTopics()
        case .withdrawRules: link.withdrawAllRules()
        case .putRules: link.putAllRules()
        case .askBarrier(let number):
            link.callBus("GetId", []) { [self] answer in
                if !answer.isOfLostConnection { run(.barrierPassed(number)) }
            }
        case .publish(let state): states.set(state)
        case .noteCutOff: link.counters.cutOffs.increment()
        case .answer(let call):
            let dropped = UInt64(link.counters.dropped.load(ordering: .relaxed))
            link.reply(to: call, ObserverInterface.SetState.Answer(dropped).arguments)
        case .postpone(let call): link.refuse(call, .namesAdded)
        case .acknowledge(let call): link.reply(to: call)
        case .refuse(let call): link.refuse(call, .accessDenied("Only the lifecycle agent may do this."))
        case .tell(let agent, let statement, let number): tell(agent, statement, asking: number)
        case .ask(let agent, let number): requests.removeValue(forKey: number)?.ask(agent)
        case .fail(let number):
            guard let request = requests.removeValue(forKey: number) else { return }
            if loss != nil, isReturning, let askAgain = request.askAgain {
                held.append((askAgain, request.fail))
            } else {
                request.fail(loss ?? noAgent)
            }
        case .disconnect: link.lose(.disconnected)
        case .setDeadline(let milliseconds): deadline = milliseconds.map { .now + $0 }
        }
    }

    private var noAgent: NotifyBusError {
        if !link.bus.isWhole { return .hiddenAgent }
        return contact.withLock { $0 == .silent } ? .silentAgent : .noAgent
    }

    /// The owner of the agent's name gets a duplicate of the socket and may silence the program, so it must be root or
    /// the program's own user.
    private func findAgent(_ search: Int, _ owner: String?) {
        guard let owner else {
            return link.findOwner(of: service.name, activates: true) { [self] answer in
                switch answer {
                case .success(let owner): findAgent(search, owner)
                case .failure(let fault):
                    if fault.isOfLostConnection { return }
                    contact.withLock { $0 = AgentContact(fault) }
                    found(nil, search)
                }
            }
        }
        link.findUser(of: owner) { [self] answer in
            if answer.isOfLostConnection { return }
            let user = try? answer.get()
            let isTrusted = user == 0 || user == geteuid()
            if !isTrusted {
                let reason = "it belongs neither to root nor to this user"
                contact.withLock { $0 = .absent(reason: reason) }
            }
            found(isTrusted ? owner : nil, search)
        }
    }

    private func found(_ agent: String?, _ search: Int) {
        if agent == nil { goWithoutRelay() }
        run(.found(search: search, agent: agent))
    }

    /// There is no relay. The program observes as if it were outside a sandbox, and hears what its proxy lets in.
    private func goWithoutRelay() {
        guard service == .relay else { return }
        relayed.isMissing = true
        link.hearByBus()
    }

    private func register(_ agent: String, _ registration: AgentInterface.Register) {
        var registration = registration
        (registration.names, registration.prefixes) = link.registry.subjects
        registration.program = LifecyclePeer.programName
        registration.followsDesktop = states.followsDesktop
        registration.states = nameStates.entriesToRegister
        // This reports everything.
        (untold, isAnswerDue) = (RelayReports.Batch(), false)
        reports = RelayReports()
        reportsCount += 1
        // A relay reads no streams.
        let socket = service == .agent ? dup(link.descriptor) : -1
        defer { if socket >= 0 { close(socket) } }
        registration.socket = socket >= 0 ? socket : nil
        let topics = service == .relay ? link.registry.allTopics : []
        link.call(registration, to: agent, of: service) { [self] answer in
            switch answer {
            case .success(let welcome):
                contact.withLock { $0 = .present }
                if service == .relay, agent == link.lifecycle.candidate {
                    relayed.isMissing = false
                    link.hearByRelay(topics)
                }
                run(.registered(agent: agent, welcome))
            case .failure(let fault):
                if fault.isOfLostConnection { return }
                if agent == link.lifecycle.candidate {
                    contact.withLock { $0 = AgentContact(fault) }
                    goWithoutRelay()
                }
                run(.registered(agent: agent, nil))
            }
        }
    }

    private func tell(
        _ agent: String,
        _ statement: ObserverLifecycle.Statement,
        asking number: Int?
    ) {
        switch statement {
        case .observes(let names, let prefixes) where service == .relay:
            reports.add(RelayReports.Batch(names: names, prefixes: prefixes))
            report(to: agent)
        case .observesNoMore(let names, let prefixes) where service == .relay:
            reports.remove(RelayReports.Batch(names: names, prefixes: prefixes))
            report(to: agent)
        case .observes(let names, let prefixes):
            let message = AgentInterface.AddNames(names: names, prefixes: prefixes)
            // An agent has only so many calls of a connection pending, so one answer at most is due.
            if number == nil, isAnswerDue || !link.reach.hearsEverything { return link.tell(message, to: agent) }
            if number == nil { isAnswerDue = true }
            link.call(message, to: agent, of: service) { [self] answer in
                if case .failure(let fault) = answer, fault.isOfLostConnection { return }
                if let number {
                    // What was added meanwhile is confirmed with it: no topic is before the agent knows of all.
                    tellUntold()
                    return run(.additionAnswered(number))
                }
                isAnswerDue = false
                tellUntold()
            }
        case .observesNoMore(let names, let prefixes):
            link.tell(AgentInterface.RemoveNames(names: names, prefixes: prefixes), to: agent, of: service)
        case .followsDesktop(let follows):
            link.tell(AgentInterface.FollowDesktop(follows), to: agent, of: service)
        }
    }

    /// Reports to the relay what has changed, unless a call is under way.
    private func report(to agent: String) {
        guard let (removed, added) = reports.next() else { return }
        let (count, names, prefixes) = (reportsCount, Array(added.names), Array(added.prefixes))
        let removal = AgentInterface.RemoveNames(names: Array(removed.names), prefixes: Array(removed.prefixes))
        if added.isEmpty {
            return link.call(removal, to: agent, of: service) { [self] answer in
                guard count == reportsCount else { return }
                _ = reports.wereAnswered(added, isRefusal: false)
                if case .failure(let fault) = answer, fault.saysGone { return }
                report(to: agent)
            }
        }
        if !removed.isEmpty { link.tell(removal, to: agent, of: service) }
        let addition = AgentInterface.AddNames(names: names, prefixes: prefixes)
        link.call(addition, to: agent, of: service) { [self] answer in
            guard count == reportsCount else { return }
            let fault: BusFault? = if case .failure(let fault) = answer { fault } else { nil }
            // The next relay is told everything.
            let isGone = fault?.saysGone == true
            if reports.wereAnswered(added, isRefusal: fault != nil && !isGone) {
                link.relayAnswered(answer.map { _ in }, names, prefixes)
            }
            if !isGone { report(to: agent) }
        }
    }

    func synchronize(then completion: @escaping () -> Void) -> Bool {
        guard link.hearsByRelay, let agent = link.lifecycle.agent else { return false }
        link.call(RelayInterface.Synchronize(), to: agent, of: service) { _ in completion() }
        return true
    }

    private static let programName: String = {
        var buffer = [UInt8](repeating: 0, count: 64)
        let file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        let count = read(file, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)).prefix { $0 != 10 }, as: UTF8.self)
    }()
}
