// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Runs the observer's half of the lifecycle protocol on a connection: passes events to the ``ObserverLifecycle``, and
/// carries out its effects.
///
/// `@unchecked Sendable`: the variables are touched only by the thread that reads; `states` and `nameStates` have locks
/// of their own.
final class LifecyclePeer: BusPeer, ReceiverDelegate, @unchecked Sendable {
    /// A question to the agent, pending until it can be asked.
    private struct Request {
        let ask: (_ agent: String) -> Void
        let fail: (NotifyBusError) -> Void
        /// Asks it once more, on the next connection; nil if it was asked too often.
        let askAgain: (() -> Void)?
    }

    unowned let receiver: Receiver
    unowned let link: BusLink
    /// The state that others see, and the followers of its changes.
    let states = LifecycleStates()
    /// The states of names that this program has set.
    let nameStates = NameStates()
    /// Whether others can be heard by a relay alone; as far as that is known.
    let relayed = RelayStanding()
    let contact = Monitor(AgentContact.unknown)
    /// Until when the agent must have answered.
    private var limit: MonotonicTime? { didSet { noteDeadline() } }
    /// When an agent that has refused this program is asked again, and which one: its user may have had too much pending.
    /// Also when the bus is asked again to start a relay.
    private var retry = BackOff(first: 250, last: 60_000) { didSet { noteDeadline() } }
    /// The earlier of both. The leader reads it before each sleep, without a check for exclusive access.
    private(set) var deadline: MonotonicTime?
    private var refusedBy = ""
    /// Where the program registers.
    private(set) var service = LifecycleService.agent
    private var requests: [Int: Request] = [:]
    private var lastRequest = 0
    /// Those that wait for the next connection: perhaps the last one has ended only because the agent had parked the program.
    private var held: [(askAgain: () -> Void, fail: (NotifyBusError) -> Void)] = []
    /// Whether the bus has accepted the connection, and whether it had accepted the one that is lost and none was attempted
    /// since.
    private var isConnected = false
    private var isReturning = false
    /// The state that the program has reported last.
    private var reported: LifecycleState?
    /// The events that wait for this program; each agent is told.
    private var heldNames: Set<NotifyName> = []
    var untold = Untold()
    private var lastSearch = 0
    /// Why requests fail while the loss of the connection is being handled.
    private var loss: NotifyBusError?

    init(_ receiver: Receiver) {
        (self.receiver, link) = (receiver, receiver.link)
        link.peer = self
        receiver.delegate = self
    }

    private func noteDeadline() { deadline = .earlier(limit, retry.time) }

    var keepsConnection: Bool { states.isFollowed || states.current == .suspended || !held.isEmpty }

    // MARK: - Incoming messages

    func linkIsReady(_ link: BusLink) {
        let needsRelay = link.bus.passage == .relay
        service = needsRelay ? .relay : .agent
        receiver.hearsByRelay = needsRelay
        contact.withLock { $0 = .asked }
        retry.reset()
        (isConnected, isReturning) = (true, false)
        run(
            .connected(
                uniqueName: link.uniqueName,
                wasCutOff: receiver.wasCutOff,
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
        retry.cancel()
        if !isReturning { failHeld(error) }
        // The agent that may have parked the program was not subscribed to these.
        receiver.lifecycle.keep(untold.additions.names.compactMap { try? NotifyName($0) })
        untold.begin()
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
        if let time = retry.time, time <= .now {
            retry.cancel()
            if receiver.lifecycle.agent == nil, receiver.lifecycle.candidate == nil { run(.ownerChanged(refusedBy)) }
        }
        guard let time = limit, time <= .now else { return }
        limit = nil
        if receiver.lifecycle.agent == nil {
            let isThere = receiver.lifecycle.candidate != nil || contact.withLock { $0 == .asked }
            goWithoutRelay(isThere ? "did not answer in time." : nil)
            contact.withLock { if $0 == .asked { $0 = .silent } }
        }
        run(.deadlinePassed)
    }

    func ruleIsAnswered() {
        guard receiver.lifecycle.gate == .opening else { return }
        run(.ruleAnswered)
    }

    func handle(_ signal: BusSignal) {
        if let change = OwnerChange(signal) {
            signal.arguments.closeDescriptors()
            if change.name == service.name {
                retry.reset()
                run(.ownerChanged(change.owner))
            }
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
        call.wantsReply && call.sender != receiver.lifecycle.agent && !link.mayAnswerStrangers
    }

    func handle(_ call: BusCall) -> Bool {
        guard call.path == ObserverInterface.path, call.interface == ObserverInterface.name else { return false }
        let caller = ObserverLifecycle.Call(sender: call.sender, serial: call.serial, wantsReply: call.wantsReply)
        // A stranger's message need not be understood.
        let isAgent = call.sender == receiver.lifecycle.agent
        do throws(ArgumentError) {
            switch call.member {
            case ObserverInterface.SetState.member where isAgent:
                let message = try ObserverInterface.SetState(call.arguments)
                // The agent is told what was added before it may suspend the program.
                if let commands = receiver.registry.takeRuleCommands() {
                    receiver.run(commands)
                }
                tellUntold()
                run(.setState(message.state, additions: message.additions, caller))
            case ObserverInterface.Deliver.member where isAgent:
                run(.deliver(try ObserverInterface.Deliver(call.arguments).value, caller))
            case ObserverInterface.KeepStates.member where isAgent:
                keep(try ObserverInterface.KeepStates(call.arguments).states)
                reply(to: caller)
            case ObserverInterface.DeliverPosts.member where isAgent && service == .relay:
                receiver.receive(try ObserverInterface.DeliverPosts(call.arguments))
                reply(to: caller)
            case ObserverInterface.Mark.member:
                _ = try ObserverInterface.Mark(call.arguments)
                run(.marked(by: call.sender))
            case _ where isAgent:
                return false
            default:
                call.arguments.closeDescriptors()
                refuse(caller, .accessDenied("Only the lifecycle agent may do this."))
            }
        } catch {
            refuse(caller, error.fault(for: call.member))
        }
        return true
    }

    /// The next agent learns these from this connection, if this agent dies.
    private func keep(_ states: [AgentInterface.NameStateEntry]) {
        for state in states {
            guard let name = try? NotifyName(state.name), !receiver.registry.topics(of: [.name(name)]).isEmpty else {
                continue
            }
            nameStates.note(NameStates.Entry(value: state.number, stamp: state.stamp), of: name)
        }
    }

    private func reply(to call: ObserverLifecycle.Call, _ arguments: [BusValue] = []) {
        if call.wantsReply { link.connection?.send(.reply(to: call.sender, call.serial, arguments)) }
    }

    private func refuse(_ call: ObserverLifecycle.Call, _ fault: BusFault) {
        guard call.wantsReply else { return }
        link.connection?.send(.error(to: call.sender, call.serial, name: fault.name, fault.message))
    }

    // MARK: - Reports by the program

    /// Reports which state the program itself wants to be in.
    func report(
        _ state: LifecycleState,
        then completion: @escaping (Result<Void, NotifyBusError>) -> Void
    ) {
        ask(AgentInterface.Report(state)) { [self] answer in
            switch answer {
            case .success:
                noteReport(of: state)
                completion(.success(()))
            case .failure(.unreachable(let error)): completion(.failure(error))
            case .failure(.refused(let fault)):
                let isLate = fault.name == AgentInterface.ErrorName.timedOut
                if isLate { noteReport(of: state) }
                completion(.failure(NotifyBusError(isLate ? .timedOut : .failed, fault.message)))
            }
        }
    }

    /// A later agent learns what was reported from the registration.
    private func noteReport(of state: LifecycleState) {
        // It may have said that the program is ready for its nap, which the agent does not keep either.
        if state != .suspended || !states.followsDesktop { reported = state }
    }

    /// Calls a method of the agent, once the agent knows this connection.
    func ask<Question: ProtocolCall>(
        _ question: Question,
        then completion: @escaping (Result<Question.Answer, AgentError>) -> Void
    ) {
        ask(question) { answer, _ in completion(answer) }
    }

    /// - Parameters:
    ///   - tries: how often to ask. An agent that is being replaced leaves without an answer, perhaps before the bus
    ///     has said who is next; and one that has parked the program ends its connection.
    ///   - completion: also gets the agent that has answered; none if no agent was asked.
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
        guard link.connection != nil else {
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
                        let isReplaced = fault.name == BusFault.noReply || receiver.lifecycle.agent != agent
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
            guard receiver.lifecycle.tellsNextAgent(sayingBy: agent) else {
                return setState(value, of: name, then: completion)
            }
            nameStates.note(NameStates.Entry(value: value, stamp: accepted.value), of: name)
            completion(.success(()))
        }
    }

    /// Sets the state of a name if it is `old`, and remembers it.
    ///
    /// - Parameter completion: gets what the state was.
    func swapState(
        _ old: UInt64,
        for new: UInt64,
        of name: NotifyName,
        then completion: @escaping (Result<UInt64, AgentError>) -> Void
    ) {
        ask(AgentInterface.SwapNameState(name: name.string, old: old, new: new)) { [self] answer, _ in
            if case .success(let accepted) = answer, accepted.stamp > 0 {
                nameStates.note(NameStates.Entry(value: new, stamp: accepted.stamp), of: name)
            }
            completion(answer.map(\.value))
        }
    }

    /// Has sleep or shutdown wait for this program, from the next time on and with every agent.
    ///
    /// - Parameter completion: gets the number of the last time.
    func hold(_ name: NotifyName, then completion: @escaping (Result<UInt64, AgentError>) -> Void) {
        heldNames.insert(name)
        ask(AgentInterface.Hold(name.string)) { completion($0.map(\.value)) }
    }

    /// Lets what has begun with that number go on.
    func letGo(_ name: NotifyName, _ number: UInt64) {
        ask(AgentInterface.LetGo(name: name.string, number: number)) { _ in }
    }

    /// Reports whether the program wants to follow the desktop. A later agent learns it from the registration.
    func followDesktop(_ follows: Bool) {
        tellUntold()
        run(.says(.followsDesktop(follows)))
    }

    // MARK: - Effects

    func run(_ event: ObserverLifecycle.Event) {
        let registry = receiver.registry
        let effects = receiver.lifecycle.handle(event) { registry.namesHeard }
        for effect in effects { perform(effect) }
    }

    // The callbacks below refer to this object strongly, and the connection that keeps the questions also keeps this
    // object. A weak reference would move its reference count elsewhere, where LeakSanitizer finds no pointer to it.
    private func perform(_ effect: ObserverLifecycle.Effect) {
        switch effect {
        case .watchAgent: link.callBus("AddMatch", [.string(OwnerChange.rule(of: service.name))])
        case .findAgent(let search, let owner):
            lastSearch = search
            receiver.awaitsRelay = service == .relay
            findAgent(search, owner)
        case .register(let agent, let registration): register(agent, registration)
        case .confirmRegistrations: receiver.confirmHeldTopics()
        case .withdrawRules: receiver.withdrawAllRules()
        case .putRules: receiver.putAllRules()
        case .askBarrier(let number):
            link.callBus("GetId", []) { [self] answer in
                if !answer.isOfLostConnection { run(.barrierPassed(number)) }
            }
        case .publish(let state): states.set(state)
        case .noteCutOff: receiver.counters.forcedDisconnects.increment()
        case .answer(let call):
            let dropped = UInt64(receiver.counters.lost.load(ordering: .relaxed))
            reply(to: call, ObserverInterface.SetState.Answer(dropped).arguments)
        case .postpone(let call): refuse(call, .namesAdded)
        case .acknowledge(let call): reply(to: call)
        case .refuse(let call): refuse(call, .accessDenied("Only the lifecycle agent may do this."))
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
        case .setDeadline(let milliseconds): limit = milliseconds.map { .now + $0 }
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
                    if service == .relay, search == lastSearch, !fault.saysUnknownService, !fault.saysDenied {
                        refusedBy = ""
                        retry.schedule()
                    }
                }
            }
        }
        link.checkAgent(owner) { [self] check in
            switch check {
            case .success: found(owner, search)
            case .failure(let fault):
                if fault.isOfLostConnection { return }
                contact.withLock { $0 = AgentContact(fault) }
                found(nil, search, fault: fault.saysForeignAgent ? "is not used: \(fault.message)." : nil)
            }
        }
    }

    private func found(_ agent: String?, _ search: Int, fault: String? = nil) {
        if agent == nil, search == lastSearch { goWithoutRelay(fault) }
        run(.found(search: search, agent: agent))
    }

    /// No relay hears for the program. It observes as if it were outside a sandbox, and hears what its proxy lets in.
    ///
    /// - Parameter fault: what the relay does instead, as the end of a sentence; nil if there is none.
    private func goWithoutRelay(_ fault: String? = nil) {
        guard service == .relay else { return }
        relayed.obstacle = SandboxPassage.reasonWithoutRelay(fault)
        receiver.stopAwaitingRelay()
    }

    /// - Parameter addsLater: whether everything that is observed is only added once the agent has accepted this.
    private func register(_ agent: String, _ registration: AgentInterface.Register, addsLater: Bool = false) {
        var registration = registration
        // First these, of which the relay is told below: what another thread adds in between comes later.
        let topics = service == .relay && !addsLater ? receiver.registry.allTopics : []
        (registration.names, registration.prefixes) = addsLater ? ([], []) : receiver.registry.subjects
        registration.program = LifecyclePeer.programName
        registration.followsDesktop = states.followsDesktop
        registration.reported = reported
        registration.states = nameStates.entriesToRegister
        // This reports everything.
        untold.begin()
        // A relay reads no streams.
        let socket = service == .agent ? dup(link.descriptor) : -1
        defer { if socket >= 0 { close(socket) } }
        registration.socket = socket >= 0 ? socket : nil
        link.call(registration, to: agent, of: service) { [self] answer in
            switch answer {
            case .success(let welcome):
                contact.withLock { $0 = .present }
                retry.reset()
                if service == .relay, agent == receiver.lifecycle.candidate {
                    relayed.obstacle = nil
                    receiver.hearByRelay(topics)
                }
                run(.registered(agent: agent, welcome))
                if addsLater, agent == receiver.lifecycle.agent { tellEverything() }
                for name in heldNames { link.call(AgentInterface.Hold(name.string), to: agent, of: service) { _ in } }
            case .failure(let fault):
                if fault.isOfLostConnection { return }
                if agent == receiver.lifecycle.candidate {
                    // A name that the relay does not pass on is refused alone when it is added.
                    if service == .relay, !addsLater, fault.saysDenied {
                        return register(agent, registration, addsLater: true)
                    }
                    contact.withLock { $0 = AgentContact(fault) }
                    goWithoutRelay(fault.saysGone ? nil : "refused its registration: \(fault.message)")
                    refusedBy = agent
                    if !fault.saysGone { retry.schedule() }
                }
                run(.registered(agent: agent, nil))
            }
        }
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
