// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The observers, what they observe, their states, and who decided on these.
///
/// A value: it takes events, and returns effects. It has no clock, asks nothing, and knows nothing of D-Bus, and
/// processes only by number. So the same events have the same effects, on a bus as in a simulation.
package struct Coordinator {
    package struct Configuration: Sendable {
        /// Applications that stay in the foreground.
        package var exemptApplications: Set<String> = []
        /// Which facts may put which programs in the background.
        package var facts = FactPolicy()
        /// The sources of facts by name, in order of precedence.
        package var sources: [String] = []
        /// Processes that may not be frozen.
        package var untouchables: Set<Int32> = [1]
        /// Whether reserved names belong to root, as on the system bus.
        package var reservesNames = false
        package var quotas = Quotas()
        /// The user that the agent runs as. An observer that doesn't reply holds up its process, or with other users all
        /// that belongs to the user.
        package var user: UInt32?
        /// Above so many prefixes there is one rule for all of them.
        package var prefixRules = PrefixRules.limit
        package var proxyParts = ProxyParts()
        /// How many calls to observers may be unanswered.
        package var callLimit = CallWindow<ObserverCall, LifecycleState?>.limit
        /// The names of which it is told whether they are wanted.
        package var interests: Set<NotifyName> = []
        /// Names whose state only the agent sets.
        package var events: Set<NotifyName> = []
        /// Names whose state is kept even if they are not observed, and their initial states.
        package var pinnedStates: [NotifyName: UInt64] = [:]
        /// Which programs nap while the user is not looking at them.
        package var naps: [NapRule] = []
        /// The name in whose state bit 16 says that the machine is on external power.
        package var powerName: NotifyName?

        package init() {}
    }

    let configuration: Configuration
    /// What the sources of facts have reported.
    package internal(set) var sources: SourceTable
    /// The observed names.
    package internal(set) var observedNames: ObservedNames
    var directory = Directory()
    /// What the agent itself observes.
    private var ownSubjects = Subjects()
    var proxies: ProxySubscriptions
    var nameStates: NameStateTable
    var witnesses = StateWitnesses()
    /// The states of names that the agent posts itself.
    var eventStates: [NotifyName: UInt64] = [:]
    var requests = Requests()
    var window: CallWindow<ObserverCall, LifecycleState?>
    var ledger: Ledger
    /// The calls that have not been answered.
    var calls: Set<CallID> = []
    /// The connections that have replaced others whose streams are being read.
    var heirs = StreamHeirs()
    /// Programs behind the relay for which the agent hears while one agent follows another.
    var interim = InterimObservers()
    var now = Timestamp(nanoseconds: 0)
    package internal(set) var naps: Naps
    /// Whether a program that naps may have to be stopped, or to run.
    var mustReviewNaps = false
    /// Those that were handed over and are not subscribed yet; nil if nothing is being handed over.
    var awaitedHeritage: Set<ConnectionID>?
    private var effects: [Effect] = []

    package init(_ configuration: Configuration) {
        self.configuration = configuration
        sources = SourceTable(configuration.sources)
        observedNames = ObservedNames(interests: configuration.interests)
        nameStates = NameStateTable(pinned: configuration.pinnedStates)
        ledger = Ledger(configuration.quotas)
        proxies = ProxySubscriptions(prefixRules: configuration.prefixRules, parts: configuration.proxyParts)
        window = CallWindow(limit: configuration.callLimit)
        naps = Naps(configuration.naps)
        if naps.needsBattery, let power = configuration.powerName { observedNames.insert(Subjects(names: [power])) }
    }

    /// Handles an event.
    ///
    /// - Returns: the effects, to be carried out in order.
    package mutating func handle(_ event: Event, at now: Timestamp) -> [Effect] {
        self.now = now
        dispatch(event)
        if mustReviewNaps { reviewNaps() }
        // Connections that are waiting to be informed of their states: as many as the bus allows at once.
        while window.isWaiting, let (call, state) = window.next(now: now.nanoseconds) {
            if case .states(let id) = call {
                tellStates(id)
                continue
            }
            guard case .state(let id) = call, let state, let observer = directory[id], !observer.isParked else {
                window.hasAnswered(call)
                continue
            }
            directory[id]?.isToBeMarked = false
            emit(.tell(observer.recipient, state, additions: observer.additions, marks: observer.isToBeMarked))
        }
        // Pending requests have an alarm of their own.
        if let deadline = window.deadline, requests.isEmpty { emit(.alarm(at: deadline)) }
        for (name, isWanted) in observedNames.takeChanges() { emit(.interest(name, isWanted: isWanted)) }
        if ledger.hasShrunk, proxies.isAtRest {
            ledger.memoryIsGivenBack()
            emit(.giveMemoryBack)
        }
        defer { effects = [] }
        return effects
    }

    /// What tells two of one configuration apart, except for the time: a simulation enters no state twice.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(sources)
        hasher.combine(observedNames)
        hasher.combine(directory)
        hasher.combine(ownSubjects)
        hasher.combine(proxies)
        hasher.combine(nameStates)
        hasher.combine(witnesses)
        hasher.combine(eventStates)
        hasher.combine(requests)
        hasher.combine(window)
        hasher.combine(ledger.accounts)
        hasher.combine(ledger.sandboxes)
        hasher.combine(calls)
        hasher.combine(heirs)
        hasher.combine(interim)
        hasher.combine(naps)
        hasher.combine(awaitedHeritage)
    }

    mutating func emit(_ effect: Effect) { effects.append(effect) }

    private mutating func dispatch(_ event: Event) {
        switch event {
        case .register(let call, let newcomer):
            accept(call) { coordinator throws(Refusal) in try coordinator.register(call, newcomer) }
        case .addNames(let call, let name, let added):
            let isAccepted = acceptRegistered(call, name) { coordinator, id throws(Refusal) in
                try coordinator.addNames(call, id, added)
            }
            // A refused addition need not be waited for.
            if !isAccepted, let id = directory.id(of: name) { directory[id]?.additions &+= 1 }
        case .additionWasRefused(let name):
            if let id = directory.id(of: name) { directory[id]?.additions &+= 1 }
        case .removeNames(let call, let name, let removed):
            acceptRegistered(call, name) { coordinator, id throws(Refusal) in
                coordinator.removeNames(call, id, removed)
            }
        case .report(let call, let name, let state):
            acceptRegistered(call, name) { coordinator, id throws(Refusal) in coordinator.report(call, id, state) }
        case .followDesktop(let call, let name, let follows):
            acceptRegistered(call, name) { coordinator, id throws(Refusal) in
                coordinator.directory[id]?.followsDesktop = follows
                coordinator.answer(call, .done)
                coordinator.reconsider([id])
            }
        case .setState(let call, let caller, let target, let state, let freezes, let strangers):
            accept(call) { coordinator throws(Refusal) in
                try coordinator.setState(call, caller, target, state, freezes: freezes, strangers)
            }
        case .release(let call, let caller, let target):
            accept(call) { coordinator throws(Refusal) in
                try coordinator.release(call, caller, target)
            }
        case .setNameState(let call, let caller, let name, let value):
            accept(call) { coordinator throws(Refusal) in
                try coordinator.setNameState(call, caller, name, value)
            }
        case .swapNameState(let call, let caller, let name, let old, let new):
            accept(call) { coordinator throws(Refusal) in
                try coordinator.swapNameState(call, caller, name, old, new)
            }
        case .getNameState(let call, let name): emit(.answer(call, .value(eventStates[name] ?? nameStates[name])))
        case .eventState(let name, let value):
            eventStates[name] = value
            if name == configuration.powerName { powerHasChanged(value) }
        case .setNaps(let call, let caller, let isOn):
            accept(call) { coordinator throws(Refusal) in try coordinator.setNaps(call, caller, isOn) }
        case .rulesAreSet(let ticket, let failure): perform(proxies.rulesAreSet(ticket, failure: failure))
        case .markIsReached(let id): directory[id]?.transition.markIsReached()
        case .told(let id, let reply): observerReplied(id, reply)
        case .delivered(let id): deliveryIsRead(id)
        case .statesAreKept(let id): statesAreKept(id)
        case .nothingIsHeldBack(let id): if !heirs.isHeir(id) { advance(id) { $0.nothingIsHeldBack() } }
        case .froze(let process, let outcome): processFroze(process, outcome)
        case .thawed(let process, let failure):
            directory[process: process]?.freezing.thawed(failure)
            freezeIfSuspended(process)
            for id in directory.connections(of: process) {
                if let observer = directory[id] { keepStates(of: observer.subjects.names, by: id) }
            }
            updateLook(at: process)
        case .drained(let id): streamIsRead(id)
        case .found(let id, let names): keep(names, for: id)
        case .missed(let id, let names): deliverMissed(names, to: id)
        case .posted(let name): posted(name)
        case .connectionEnded(let id): connectionEnded(id)
        case .processEnded(let process): processEnded(process)
        case .processStopped(let process): processStopped(process)
        case .processContinued(let process): processContinued(process)
        case .news(let news): note(news)
        case .awaitChanges(let number): awaitChanges(number)
        case .agentObserves(let subjects): agentObserves(subjects)
        case .sourceWasReset(let name, let condition):
            sources.reset(name, condition)
            if !naps.isEmpty { focusMayHaveMoved() }
        case .areUsed(let uses, let question): perform(naps.areUsed(uses, question: question, now: now.nanoseconds))
        case .frozeProgram(let program, let processes): naps.isFrozen(program, processes)
        case .isToEnd(let process): thaw(process)
        case .programIsToEnd(let program): perform(naps.isToEnd(program))
        case .napAlarm:
            perform(naps.timeHasCome(now: now.nanoseconds))
            mustReviewNaps = true
        case .alarm: expireRequests()
        case .inherit(let heritage, let processes): inherit(heritage, processes)
        case .heritageIsPartial: heritageIsPartial()
        case .hearForRelayed: hearForRelayed()
        case .leaveToRelay: leaveToRelay()
        case .relayHears(let name): relayHears(for: name)
        case .relayHearsAll(let name): hasToldAll(name)
        case .heritageIsOld: nameStates.forgetAll { observedNames.containsExactly($0) }
        case .ending(let kept):
            thawEverything(except: kept)
            perform(naps.end())
        }
    }

    /// Parts of the agent hear their names by themselves. Here it counts only that they are wanted.
    private mutating func agentObserves(_ subjects: Subjects) {
        observedNames.insert(subjects)
        observedNames.remove(ownSubjects)
        nameStates.forget(ownSubjects.subtracting(subjects).names) { observedNames.containsExactly($0) }
        ownSubjects = subjects
    }

    // MARK: - Calls

    /// Answers a call if the body refuses it.
    ///
    /// - Returns: whether it did not.
    @discardableResult
    private mutating func accept(_ call: CallID, _ body: (inout Coordinator) throws(Refusal) -> Void) -> Bool {
        calls.insert(call)
        do throws(Refusal) {
            try body(&self)
            return true
        } catch {
            refuse(call, error)
            return false
        }
    }

    @discardableResult
    private mutating func acceptRegistered(
        _ call: CallID,
        _ name: String,
        _ body: (inout Coordinator, ConnectionID) throws(Refusal) -> Void
    ) -> Bool {
        guard let id = directory.id(of: name) else {
            emit(.refuse(call, .notRegistered))
            return false
        }
        return accept(call) { coordinator throws(Refusal) in try body(&coordinator, id) }
    }

    mutating func answer(_ call: CallID, _ answer: Effect.Answer) {
        guard calls.remove(call) != nil else { return assertionFailure("A call is answered twice.") }
        emit(.answer(call, answer))
    }

    mutating func refuse(_ call: CallID, _ refusal: Refusal) {
        guard calls.remove(call) != nil else { return assertionFailure("A call is refused that was answered.") }
        emit(.refuse(call, refusal))
    }
}

extension Coordinator {
    mutating func setNameState(_ call: CallID, _ caller: Caller, _ name: NotifyName, _ value: UInt64) throws(Refusal) {
        try checkState(of: name, caller)
        answer(call, .stamp(nameStates.set(value, of: name, now: stamp)))
        haveStatesKept(of: [name])
    }

    mutating func swapNameState(
        _ call: CallID,
        _ caller: Caller,
        _ name: NotifyName,
        _ old: UInt64,
        _ new: UInt64
    ) throws(Refusal) {
        try checkState(of: name, caller)
        let present = nameStates[name]
        guard present == old else { return answer(call, .swapped(present, stamp: 0)) }
        answer(call, .swapped(present, stamp: nameStates.set(new, of: name, now: stamp)))
        haveStatesKept(of: [name])
    }

    /// Throws if the name has no state, or the caller may not set it.
    private func checkState(of name: NotifyName, _ caller: Caller) throws(Refusal) {
        guard !configuration.events.contains(name) else {
            throw Refusal(.accessDenied, "Only the agent can set the state of '\(name)'.")
        }
        guard maySetState(of: name, caller.user) else {
            throw Refusal(.accessDenied, "Only its owner and root can set the state of '\(name)'.")
        }
        let hasState =
            observedNames.containsExactly(name) || nameStates.isPinned(name) || nameStates.isHandedOver(name)
        guard hasState else {
            throw Refusal(.notObserved, "No connection observes '\(name)', so it has no state.")
        }
    }

    /// The same permission as to post the name.
    func maySetState(of name: NotifyName, _ user: UInt32) -> Bool {
        user == 0 || name.isOpen(to: user) && !(configuration.reservesNames && name.isReserved)
    }

    /// Takes over the states that a connection had set under an earlier agent.
    mutating func restoreStates(_ statement: Newcomer.Statement, of user: UInt32, by id: ConnectionID) {
        for (name, entry) in statement.states
        where statement.subjects.names.contains(name) && maySetState(of: name, user)
            && !configuration.events.contains(name)
        {
            let known = nameStates.entry(of: name)
            nameStates.restore(entry, of: name, now: stamp)
            if nameStates.entry(of: name) != known { witnesses[name] = nil }
            if witnesses[name] == nil, nameStates.entry(of: name) == entry { witnesses[name] = id }
        }
    }

    private var stamp: UInt64 { UInt64(max(0, now.nanoseconds)) }
}
