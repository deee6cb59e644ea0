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
        let ask: @Sendable (_ agent: String, borrowing BusLink) -> Void
        let fail: @Sendable (NotifyBusError, borrowing BusLink) -> Void
    }

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
    /// What the relay has yet to be told of what is observed, and how often that was started anew.
    private var reports = RelayReports()
    private var reportsCount = 0
    /// Why requests fail while the loss of the connection is being handled.
    private var loss: NotifyBusError?

    var keepsConnection: Bool { states.isFollowed || states.current == .suspended }

    // MARK: - Incoming messages

    func linkIsReady(_ link: borrowing BusLink) {
        let needsRelay = link.engine.observing.bus.passage == .relay
        service = needsRelay ? .relay : .agent
        link.observing.hearsByRelay = needsRelay
        contact.withLock { $0 = .asked }
        run(
            .connected(
                uniqueName: link.uniqueName,
                wasCutOff: link.wasCutOff,
                isOnAnotherBus: link.isOnAnotherBus,
                needsRelay: needsRelay
            ),
            link
        )
    }

    func linkIsLost(_ error: NotifyBusError) {}

    func linkIsLost(_ error: NotifyBusError, on link: borrowing BusLink) {
        loss = error
        run(.lost, link)
        loss = nil
    }

    func deadlineHasPassed(_ link: borrowing BusLink) {
        deadline = nil
        if link.observing.lifecycle.agent == nil {
            goWithoutRelay(link)
            contact.withLock { if $0 == .asked { $0 = .silent } }
        }
        run(.deadlinePassed, link)
    }

    func ruleIsAnswered(_ link: borrowing BusLink) {
        guard link.observing.lifecycle.gate == .opening else { return }
        run(.ruleAnswered, link)
    }

    func namesHaveChanged(names: [String], prefixes: [String], added: Bool, _ link: borrowing BusLink) {
        let statement: ObserverLifecycle.Statement =
            added ? .observes(names: names, prefixes: prefixes) : .observesNoMore(names: names, prefixes: prefixes)
        run(.says(statement), link)
    }

    func handle(_ signal: BusSignal, on link: borrowing BusLink) {
        switch signal.member {
        case AgentInterface.Decided.member where signal.interface == service.name:
            guard let decided = try? AgentInterface.Decided(signal.arguments) else { return }
            run(.decided(decided.decider, by: signal.sender), link)
        case "NameOwnerChanged" where signal.sender == BusMessage.busName:
            let texts = signal.arguments.compactMap(\.string)
            signal.arguments.closeDescriptors()
            if texts.count == 3, texts[0] == service.name { run(.ownerChanged(texts[2]), link) }
        default:
            signal.arguments.closeDescriptors()
        }
    }

    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool {
        guard call.path == ObserverInterface.path, call.interface == ObserverInterface.name else { return false }
        let caller = ObserverLifecycle.Call(sender: call.sender, serial: call.serial, wantsReply: call.wantsReply)
        // A stranger's message need not be understood.
        let isAgent = call.sender == link.observing.lifecycle.agent
        do throws(ArgumentError) {
            switch call.member {
            case ObserverInterface.SetState.member where isAgent:
                let message = try ObserverInterface.SetState(call.arguments)
                // The agent is told what was added before it may suspend the program.
                if let commands = link.engine.registry.takeRuleCommands() {
                    link.observing.run(commands, on: link.engine)
                }
                run(.setState(message.state, additions: message.additions, caller), link)
            case ObserverInterface.Deliver.member where isAgent:
                run(.deliver(try ObserverInterface.Deliver(call.arguments).names, caller), link)
            case ObserverInterface.DeliverPosts.member where isAgent && service == .relay:
                link.observing.receive(try ObserverInterface.DeliverPosts(call.arguments), on: link.engine)
                link.reply(to: caller)
            case ObserverInterface.Mark.member:
                _ = try ObserverInterface.Mark(call.arguments)
                run(.marked(by: call.sender), link)
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

    // MARK: - Reports by the program

    /// Reports which state the program itself wants to be in.
    func report(
        _ state: LifecycleState,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Void, NotifyBusError>) -> Void
    ) {
        ask(AgentInterface.Report(state: state), link) { answer in
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
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Question.Answer, AgentError>) -> Void
    ) {
        ask(question, link) { answer, _, _ in completion(answer) }
    }

    /// - Parameter completion: also gets the agent that has answered; none if nobody was asked.
    private func ask<Question: ProtocolCall>(
        _ question: Question,
        _ link: borrowing BusLink,
        then completion:
            @escaping @Sendable (Result<Question.Answer, AgentError>, _ agent: String, borrowing BusLink) -> Void
    ) {
        // This alone is no reason to connect to the bus.
        guard link.descriptor >= 0 else {
            return completion(.failure(.unreachable(link.observing.lossError ?? .disconnected)), "", link)
        }
        lastRequest += 1
        requests[lastRequest] = Request(
            ask: { agent, link in
                link.call(question, to: agent, of: self.service) { answer, link in
                    let noAgent = LifecyclePeer.noAgent(link)
                    completion(answer.mapError { $0.saysGone ? .unreachable(noAgent) : .refused($0) }, agent, link)
                }
            },
            fail: { completion(.failure(.unreachable($0)), "", $1) }
        )
        run(.asks(request: lastRequest), link)
    }

    /// Sets the state of a name, and remembers it for the next agent.
    func setState(
        _ value: UInt64,
        of name: NotifyName,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Void, AgentError>) -> Void
    ) {
        ask(AgentInterface.SetNameState(name: name.string, value: value), link) { answer, agent, link in
            guard case .success(let accepted) = answer else { return completion(answer.map { _ in }) }
            // The next agent has been registered with before this was known: it must be asked as well.
            guard link.observing.lifecycle.tellsNextAgent(sayingBy: agent) else {
                return self.setState(value, of: name, link, then: completion)
            }
            self.nameStates.note(NameStates.Entry(value: value, stamp: accepted.stamp), of: name)
            completion(.success(()))
        }
    }

    /// Reports whether the program wants to follow the desktop. A later agent learns it from the registration.
    func followDesktop(_ follows: Bool, _ link: borrowing BusLink) {
        run(.says(.followsDesktop(follows)), link)
    }

    // MARK: - Effects

    private func run(_ event: ObserverLifecycle.Event, _ link: borrowing BusLink) {
        let registry = link.engine.registry
        let effects = link.observing.lifecycle.handle(event) { registry.namesHeard }
        for effect in effects { perform(effect, link) }
    }

    // The callbacks below refer to this object strongly, and the connection that keeps the questions also keeps this
    // object. A weak reference would move its reference count elsewhere, where LeakSanitizer finds no pointer to it.
    private func perform(_ effect: ObserverLifecycle.Effect, _ link: borrowing BusLink) {
        switch effect {
        case .watchAgent: link.callBus("AddMatch", [.string(LifecyclePeer.ownerRule(of: service))])
        case .findAgent(let search, let owner): findAgent(search, owner, link)
        case .register(let agent, let registration): register(agent, registration, link)
        case .confirmRegistrations: link.observing.confirmHeldTopics(on: link.engine)
        case .withdrawRules: link.observing.withdrawAllRules(on: link.engine)
        case .putRules: link.observing.putAllRules(on: link.engine)
        case .askBarrier(let number):
            link.callBus("GetId", []) { answer, link in
                if !answer.isOfLostConnection { self.run(.barrierPassed(number), link) }
            }
        case .publish(let state): states.set(state)
        case .noteCutOff: link.engine.counters.cutOffs.increment()
        case .answer(let call):
            let dropped = UInt64(link.engine.counters.dropped.load(ordering: .relaxed))
            link.reply(to: call, ObserverInterface.SetState.Answer(dropped: dropped).arguments)
        case .postpone(let call): link.refuse(call, .namesAdded)
        case .acknowledge(let call): link.reply(to: call)
        case .refuse(let call): link.refuse(call, .accessDenied("Only the lifecycle agent may do this."))
        case .tell(let agent, let statement, let number): tell(agent, statement, asking: number, link)
        case .ask(let agent, let number): requests.removeValue(forKey: number)?.ask(agent, link)
        case .fail(let number): requests.removeValue(forKey: number)?.fail(loss ?? LifecyclePeer.noAgent(link), link)
        case .disconnect: link.observing.lose(.disconnected, on: link.engine)
        case .setDeadline(let milliseconds): deadline = milliseconds.map { .now + $0 }
        }
    }

    private static func noAgent(_ link: borrowing BusLink) -> NotifyBusError {
        link.engine.observing.bus.isWhole ? .noAgent : .hiddenAgent
    }

    private static func ownerRule(of service: LifecycleService) -> String {
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            + "arg0='\(service.name)'"
    }

    /// The owner of the agent's name gets a duplicate of the socket and may silence the program, so it must be root or
    /// the program's own user.
    private func findAgent(_ search: Int, _ owner: String?, _ link: borrowing BusLink) {
        guard let owner else {
            return link.findOwner(of: service.name, activates: true) { answer, link in
                switch answer {
                case .success(let owner): self.findAgent(search, owner, link)
                case .failure(let fault):
                    if fault.isOfLostConnection { return }
                    self.contact.withLock { $0 = AgentContact(fault) }
                    self.found(nil, search, link)
                }
            }
        }
        link.findUser(of: owner) { answer, link in
            if answer.isOfLostConnection { return }
            let user = try? answer.get()
            let isTrusted = user == 0 || user == geteuid()
            if !isTrusted {
                let reason = "it belongs neither to root nor to this user"
                self.contact.withLock { $0 = .absent(reason: reason) }
            }
            self.found(isTrusted ? owner : nil, search, link)
        }
    }

    private func found(_ agent: String?, _ search: Int, _ link: borrowing BusLink) {
        if agent == nil { goWithoutRelay(link) }
        run(.found(search: search, agent: agent), link)
    }

    /// There is no relay. The program observes as if it were outside a sandbox, and hears what its proxy lets in.
    private func goWithoutRelay(_ link: borrowing BusLink) {
        guard service == .relay else { return }
        relayed.isMissing = true
        link.observing.hearByBus(on: link.engine)
    }

    private func register(_ agent: String, _ registration: AgentInterface.Register, _ link: borrowing BusLink) {
        var registration = registration
        (registration.names, registration.prefixes) = link.engine.registry.subjects
        registration.program = LifecyclePeer.programName
        registration.followsDesktop = states.followsDesktop
        registration.states = nameStates.entriesToRegister
        // This reports everything.
        reports = RelayReports()
        reportsCount += 1
        // A relay reads no streams.
        let socket = service == .agent ? dup(link.descriptor) : -1
        defer { if socket >= 0 { close(socket) } }
        registration.socket = socket >= 0 ? socket : nil
        let topics = service == .relay ? link.engine.registry.allTopics : []
        link.call(registration, to: agent, of: service) { answer, link in
            switch answer {
            case .success(let welcome):
                self.contact.withLock { $0 = .present }
                if self.service == .relay, agent == link.observing.lifecycle.candidate {
                    self.relayed.isMissing = false
                    link.observing.hearByRelay(topics, on: link.engine)
                }
                self.run(.registered(agent: agent, welcome), link)
            case .failure(let fault):
                if fault.isOfLostConnection { return }
                if agent == link.observing.lifecycle.candidate {
                    self.contact.withLock { $0 = AgentContact(fault) }
                    self.goWithoutRelay(link)
                }
                self.run(.registered(agent: agent, nil), link)
            }
        }
    }

    private func tell(
        _ agent: String,
        _ statement: ObserverLifecycle.Statement,
        asking number: Int?,
        _ link: borrowing BusLink
    ) {
        switch statement {
        case .observes(let names, let prefixes) where service == .relay:
            reports.add(RelayReports.Batch(names: names, prefixes: prefixes))
            report(to: agent, link)
        case .observesNoMore(let names, let prefixes) where service == .relay:
            reports.remove(RelayReports.Batch(names: names, prefixes: prefixes))
            report(to: agent, link)
        case .observes(let names, let prefixes):
            let message = AgentInterface.AddNames(names: names, prefixes: prefixes)
            guard let number else { return link.tell(message, to: agent) }
            link.call(message, to: agent, of: service) { answer, link in
                if case .failure(let fault) = answer, fault.isOfLostConnection { return }
                self.run(.additionAnswered(number), link)
            }
        case .observesNoMore(let names, let prefixes):
            link.tell(AgentInterface.RemoveNames(names: names, prefixes: prefixes), to: agent, of: service)
        case .followsDesktop(let follows):
            link.tell(AgentInterface.FollowDesktop(follows: follows), to: agent, of: service)
        }
    }

    /// Reports to the relay what has changed, unless a call is under way.
    private func report(to agent: String, _ link: borrowing BusLink) {
        guard let (removed, added) = reports.next() else { return }
        let (count, names, prefixes) = (reportsCount, Array(added.names), Array(added.prefixes))
        let removal = AgentInterface.RemoveNames(names: Array(removed.names), prefixes: Array(removed.prefixes))
        if added.isEmpty {
            return link.call(removal, to: agent, of: service) { answer, link in
                guard count == self.reportsCount else { return }
                _ = self.reports.wereAnswered(added, isRefusal: false)
                if case .failure(let fault) = answer, fault.saysGone { return }
                self.report(to: agent, link)
            }
        }
        if !removed.isEmpty { link.tell(removal, to: agent, of: service) }
        let addition = AgentInterface.AddNames(names: names, prefixes: prefixes)
        link.call(addition, to: agent, of: service) { answer, link in
            guard count == self.reportsCount else { return }
            let fault: BusFault? = if case .failure(let fault) = answer { fault } else { nil }
            // The next relay is told everything.
            let isGone = fault?.saysGone == true
            if self.reports.wereAnswered(added, isRefusal: fault != nil && !isGone) {
                link.observing.relayAnswered(answer.map { _ in }, names, prefixes, on: link.engine)
            }
            if !isGone { self.report(to: agent, link) }
        }
    }

    func synchronize(
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (borrowing BusLink) -> Void
    ) -> Bool {
        guard link.observing.hearsByRelay, let agent = link.observing.lifecycle.agent else { return false }
        link.call(RelayInterface.Synchronize(), to: agent, of: service) { _, link in completion(link) }
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
