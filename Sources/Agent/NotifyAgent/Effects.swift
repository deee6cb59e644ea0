// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator
import NotifyCore

/// Carrying out what the coordinator has decided.
extension Agent {
    /// Passes an event to the coordinator, and carries out the effects.
    func handle(_ event: Event) {
        pump.handle(event) { for effect in coordinator.handle($0, at: .now) { perform(effect) } }
        switch event {
        case .setNameState, .swapNameState, .eventState, .register, .inherit, .heritageIsOld:
            launching?.statesHaveChanged()
        default: break
        }
    }

    private func perform(_ effect: Effect) {
        switch effect {
        case .answer(let call, let answer): self.answer(call, answer)
        case .refuse(let id, let refusal):
            if let call = openCalls.take(id) { answer(call, .failure(BusFault(refusal))) }
        case .tell(let observer, let state, let additions, let marks): tell(observer, state, additions, marks: marks)
        case .deliver(let observer, let names): deliver(names, to: observer)
        case .tellDecider(let observer, let decider):
            let (message, name) = (AgentInterface.Decided(decider.name), observer.name)
            if observer.isRelayed { relaying.emit(message, to: name) } else { link.emit(message, to: name) }
        case .keepStates(let observer, let states):
            let message = ObserverInterface.KeepStates(
                states.map { .init(name: $0.name.string, number: $0.entry.value, stamp: $0.entry.stamp) }
            )
            link.call(message, ofObserver: observer.name) { [self] _ in handle(.statesAreKept(observer.id)) }
        case .awaitHeldBack(let id):
            link.callBus("GetId", []) { [self] _ in handle(.nothingIsHeldBack(id)) }
        case .announce(let change):
            let metadata: Logger.Metadata = ["connection": "\(change.name)", "process": "\(change.process)"]
            logger.info("\(change.from) → \(change.to)", metadata: metadata)
            link.emit(
                AgentInterface.StateChanged(
                    connection: change.name,
                    process: UInt32(change.process.pid),
                    application: change.application,
                    from: change.from.rawValue,
                    to: change.to.rawValue
                )
            )
        case .announceFact(let source, let fact):
            logger.debug("\(fact.text)", metadata: ["source": "\(source)"])
            link.emit(AgentInterface.FactChanged(source: source, fact: fact.text))
        case .subscribe(let ticket, let names, let prefixes):
            subscribe(ticket, names, prefixes)
        case .unsubscribe(let ticket, let names, let prefixes):
            receiver.unsubscribe(names: names, prefixes: prefixes, for: self)
            if let ticket { subscribe(ticket, [], []) }
        case .freeze(let process, let user):
            watchdogs.check([processes[process]].compactMap(\.self)) { [self] obstacle in
                let outcome = obstacle.map { .failed($0) } ?? processes.freeze(process, for: user)
                handle(.froze(process, outcome))
            }
        case .thaw(let process): handle(.thawed(process, failure: processes.thaw(process)))
        case .freezeProgram(let program, let members):
            programs.freeze(program, members) { [self] in handle(.frozeProgram(program, $0)) }
        case .thawProgram(let program): programs.thaw(program)
        case .followUses(let question): uses.follow(question)
        case .look(let process, let mustLook):
            let isAnnounced = ends.isEmpty || !coordinator.connections(of: process).contains(where: ends.watches)
            watcher.look(at: process, mustLook, isAnnounced: isAnnounced)
        case .drain(let id): drain(id)
        case .stopDraining(let id): sockets.stopDraining(id)
        case .begin(let id): begin(id)
        case .forget(let id, let name):
            logger.debug("gone", metadata: ["connection": "\(name)"])
            sockets.forget(id)
            ends.end(id, name)
            if relaying.forget(name) { alarms.set(.relaying, at: relaying.restTime) }
            launching?.hasLeft(id)
            events.holds.forget(name)
            endDelayIfOver()
        case .watchEnd(let id, let name): ends.begin(id, name) { [self] in handle(.connectionEnded(id)) }
        case .ignoreEnd(let id, let name): ends.end(id, name)
        case .present(let process): if let facts = coordinator.facts(of: process) { sources.present(facts) }
        case .forgetProcess(let process):
            launching?.forget(process)
            processes.forget(process)
            sources.forget(process)
        case .changesAreInForce(let number): changesAreInForce(number)
        case .observersCome: sources.decide()
        case .observersHaveGone: sources.restLater()
        case .interest(let name, let isWanted): handle(EventTable.Input.wanted(name, isWanted))
        case .isInherited: heritageIsSubscribed()
        case .giveMemoryBack: receiver.giveMemoryBack()
        case .alarm(let time): alarms.set(.coordinator, at: time)
        case .napAlarm(let time): alarms.set(.naps, at: time)
        }
    }

    /// Lets everything continue that agents had stopped which are gone.
    func thawAbandoned() {
        guard configuration.ownProgram != nil else { return }
        let things = MarkFolder(servesMachine: identity.servesMachine).thawAbandoned()
        for (thing, reason) in things {
            logger.notice(
                "thawed what an agent that is gone had frozen",
                metadata: ["what": "\(thing.text)", "by": "\(reason.rawValue)"]
            )
        }
    }

    /// A stopped thing has been sent a signal that asks it to end, which it can follow only if it runs.
    func isToEnd(_ thing: StoppedThing) {
        if let process = processes.process(stoppedAs: thing) {
            logger.notice("thawing a process that has been asked to end", metadata: ["process": "\(process)"])
            handle(.isToEnd(process))
        }
        if let program = programs.program(stoppedAs: thing) {
            logger.notice("thawing a program that has been asked to end", metadata: ["program": "\(program)"])
            handle(.programIsToEnd(program))
        }
    }

    private func subscribe(
        _ ticket: Ticket,
        _ names: [NotifyName],
        _ prefixes: [NamePrefix]
    ) {
        if names.isEmpty, prefixes.isEmpty {
            link.callBus("GetId", []) { [self] _ in handle(.rulesAreSet(ticket, failure: nil)) }
        } else {
            receiver.subscribe(names: names, prefixes: prefixes, for: self) { [self] error in
                if let error { logger.error("\(error)") }
                handle(.rulesAreSet(ticket, failure: error?.description))
            }
        }
    }

    /// A connection observes: its end is noticed through its socket, or the bus is asked to report it.
    private func begin(_ id: ConnectionID) {
        guard let entry = coordinator.entry(of: id) else { return }
        logger.debug(
            "registered",
            metadata: ["connection": "\(entry.name)", "process": "\(entry.process)", "state": "\(entry.state)"]
        )
        if sockets.begin(id, entry.name, of: entry.process) { return ends.end(id, entry.name) }
        ends.begin(id, entry.name) { [self] in handle(.connectionEnded(id)) }
    }

    private func drain(_ id: ConnectionID) {
        guard let name = coordinator.name(of: id), let process = coordinator.process(of: id).flatMap({ processes[$0] })
        else { return }
        logger.notice("parking", metadata: ["connection": "\(name)", "process": "\(process.pid)"])
        // From here on posts set bits; earlier ones are in the stream before the mark.
        send(ObserverInterface.Mark(id.number), to: name)
        guard let stream = sockets.drain(id, process, agent: link.uniqueName) else { return handle(.drained(id)) }
        link.callBus("GetId", []) { _ in stream.markIsRouted() }
    }

    /// The stream of a parked connection has been read.
    ///
    /// Until the bus has said who sent the names that have an owner, the stream counts as being read: a connection that
    /// replaces the parked one meanwhile gets them.
    ///
    /// - Parameter verified: names that have an owner and were posted by it.
    func streamIsRead(_ id: ConnectionID, _ outcome: ParkedStream.Outcome, _ verified: [NotifyName]) {
        let receiver = coordinator.receiver(ofStream: id)
        handle(.drained(id))
        guard let receiver, let subjects = coordinator.subjects(of: receiver) else { return }
        logger.notice(
            "parked",
            metadata: [
                "connection": "\(coordinator.name(of: receiver) ?? "")", "messages": "\(outcome.messages)",
                "mark": "\(outcome.hasMark ? "seen" : "missed")",
            ]
        )
        handle(.found(receiver, outcome.names(amongst: subjects) + verified))
    }
}

extension BusLink {
    /// Asks the bus who sent the names in a stream that have an owner.
    ///
    /// - Parameter completion: receives those that were sent by their owners.
    func verify(
        _ outcome: ParkedStream.Outcome,
        _ senders: ArraySlice<String>,
        _ verified: [NotifyName] = [],
        then completion: @escaping ([NotifyName]) -> Void
    ) {
        guard let sender = senders.first else { return completion(verified) }
        findUser(of: sender) { [self] user in
            let names = outcome.owned[sender] ?? []
            let believed = (try? user.get()).map { user in names.filter { $0.isOpen(to: user) } } ?? []
            verify(outcome, senders.dropFirst(), verified + believed, then: completion)
        }
    }
}

/// Carries out what a machine decides about events. Those that come meanwhile are handled after it.
final class Pump<Event> {
    private var events = Fifo<Event>()
    private var isBusy = false

    var isAtRest: Bool { !isBusy && events.isEmpty }

    /// - Returns: false if it is called meanwhile.
    @discardableResult
    func handle(_ event: Event, _ carryOut: (Event) -> Void) -> Bool {
        events.append(event)
        guard !isBusy else { return false }
        isBusy = true
        defer { isBusy = false }
        while let event = events.popFirst() { carryOut(event) }
        return true
    }
}

/// The calls that have not been answered yet.
struct OpenCalls {
    private var calls: [CallID: BusCall] = [:]
    private var last: UInt64 = 0

    /// Keeps a call that is answered later.
    mutating func keep(_ call: BusCall) -> CallID {
        last += 1
        calls[CallID(last)] = call.withoutArguments
        return CallID(last)
    }

    mutating func take(_ id: CallID) -> BusCall? { calls.removeValue(forKey: id) }

    /// Takes all of them, the oldest first.
    mutating func takeAll() -> [BusCall] {
        defer { calls = [:] }
        return calls.sorted { $0.key.number < $1.key.number }.map(\.value)
    }
}

/// When each owner wants to be woken: the loop has one timer for all.
struct Alarms {
    enum Owner {
        case coordinator, naps, events, launching, relaying
        /// The machine may go to sleep.
        case sleep
    }

    private let loop: EventLoop
    private let ring: () -> Void
    private var times: [Owner: Int64] = [:]
    private var timer: Int?

    init(on loop: EventLoop, ring: @escaping () -> Void) { (self.loop, self.ring) = (loop, ring) }

    /// A later call with the same owner replaces an earlier one.
    mutating func set(_ owner: Owner, at time: Int64?) {
        times[owner] = time
        arm()
    }

    /// It rings.
    ///
    /// - Returns: whose time has come.
    mutating func take(now: Int64) -> [Owner] {
        let due = times.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for owner in due { times[owner] = nil }
        arm()
        return due
    }

    private mutating func arm() {
        loop.cancel(timer)
        timer = times.values.min().map { loop.at(MonotonicTime(nanoseconds: $0), ring) }
    }
}

/// The time of day.
enum WallClock {
    /// Seconds since 1970.
    static var now: UInt64 { UInt64(max(0, time(nil))) }
}

extension Timestamp {
    static var now: Timestamp { Timestamp(nanoseconds: MonotonicTime.now.nanoseconds, wallClock: WallClock.now) }
}

// Answers.
extension Agent {
    private func answer(_ id: CallID, _ answer: Effect.Answer) {
        guard let call = openCalls.take(id) else { return }
        let arguments: [BusValue] =
            switch answer {
            case .done: Acknowledgement().arguments
            case .registered(let state, let pending, let isComplete):
                AgentInterface.Register.Answer(
                    state: state,
                    pending: pending.map(\.string),
                    isComplete: isComplete
                ).arguments
            case .connections(let count): AgentInterface.ConnectionCount(UInt32(count)).arguments
            case .stamp(let stamp): AgentInterface.SetNameState.Answer(stamp).arguments
            case .swapped(let value, let stamp):
                AgentInterface.SwapNameState.Answer(value: value, stamp: stamp).arguments
            case .value(let value): AgentInterface.GetNameState.Answer(value).arguments
            }
        self.answer(call, .success(arguments))
    }

    /// Answers a call on the connection by which it has come, or through the relay.
    func answer(_ call: BusCall, _ answer: BusAnswer) {
        if call.isForRelay {
            return relaying.answer(call, answer, process: coordinator.id(of: call.sender).flatMap(coordinator.process))
        }
        switch answer {
        case .success(let arguments): link.reply(to: call, arguments)
        case .failure(let fault): link.refuse(call, fault)
        }
    }
}

// Messages to observers.
extension Agent {
    /// Informs an observer of its state.
    private func tell(_ observer: Effect.Recipient, _ state: LifecycleState, _ additions: UInt32, marks: Bool) {
        let (id, name) = (observer.id, observer.name)
        if observer.isRelayed { return relaying.tell(name, state) }
        if marks {
            // The reply is at the point in the stream of posts at which the bus has processed the question.
            link.callBus("GetId", []) { [self] _ in handle(.markIsReached(id)) }
        }
        link.call(ObserverInterface.SetState(state: state, additions: additions), ofObserver: name) { [self] answer in
            let reply: Event.Reply
            switch answer {
            case .success(let values):
                let dropped = values.first?.uint64
                values.closeDescriptors()
                reply = .done(dropped: dropped, isHoldingBack: receiver.isHoldingPostsBack)
            case .failure(let fault) where fault.name == ObserverInterface.namesAdded:
                // Until what it has added is taken note of, it would only say so again.
                let isLater = intake.turns.follow({ [self] in handle(.told(id, .namesAdded)) }, from: name)
                if isLater { return }
                reply = .namesAdded
            case .failure(let fault): reply = fault.saysGone ? .gone : .failed(fault.message)
            }
            handle(.told(id, reply))
        }
    }

    /// Delivers names. The last call has fewer than the limit, possibly none, so that the observer knows it has
    /// everything.
    private func deliver(_ names: [NotifyName], to observer: Effect.Recipient) {
        let (id, name) = (observer.id, observer.name)
        if observer.isRelayed {
            if names.isEmpty { return }
            // It keeps them until the program has read them.
            relaying.keep(names, for: name)
            return handle(.delivered(id))
        }
        var rest = names[...]
        while rest.count >= ObserverInterface.Deliver.limit {
            send(ObserverInterface.Deliver(rest.prefix(ObserverInterface.Deliver.limit).map(\.string)), to: name)
            rest = rest.dropFirst(ObserverInterface.Deliver.limit)
        }
        let last = ObserverInterface.Deliver(rest.map(\.string))
        if names.isEmpty { return send(last, to: name) }
        link.call(last, ofObserver: name) { [self] answer in
            // One that has gone is forgotten along with everything that it was to receive.
            if case .success(let values) = answer { values.closeDescriptors() }
            handle(.delivered(id))
        }
    }

    /// Calls an observer without requesting a reply.
    private func send<Message: ProtocolMessage>(_ message: Message, to name: String) {
        let (path, interface) = (ObserverInterface.path, ObserverInterface.name)
        link.tell(name, path: path, interface: interface, member: Message.member, message.arguments)
    }
}

extension BusCall {
    /// Whether it has come to the relay: no other connection takes a call of its interface.
    var isForRelay: Bool { interface == RelayInterface.name }
}

extension BusLink {
    /// Calls an observer; `completion` receives the reply, on this thread. One that is stopped replies when it goes on.
    func call<Call: ProtocolCall>(
        _ call: Call,
        ofObserver name: String,
        then completion: @escaping (BusAnswer) -> Void
    ) {
        let (path, interface) = (ObserverInterface.path, ObserverInterface.name)
        self.call(
            name,
            path: path,
            interface: interface,
            member: Call.member,
            call.arguments,
            waitsForever: true,
            then: completion
        )
    }
}

// The faults with which the agent refuses calls.
extension BusFault {
    init(_ refusal: Refusal) {
        let name =
            switch refusal.kind {
            case .invalidArguments: "org.freedesktop.DBus.Error.InvalidArgs"
            case .accessDenied: "org.freedesktop.DBus.Error.AccessDenied"
            case .limitExceeded: "org.freedesktop.DBus.Error.LimitsExceeded"
            case .failed: "org.freedesktop.DBus.Error.Failed"
            case .noSuchTarget: AgentInterface.ErrorName.noSuchTarget
            case .notRegistered: AgentInterface.ErrorName.notRegistered
            case .notObserved: AgentInterface.ErrorName.notObserved
            case .timedOut: AgentInterface.ErrorName.timedOut
            }
        self.init(name: name, message: refusal.message)
    }

    static func invalidArguments(_ message: String) -> BusFault { BusFault(Refusal(.invalidArguments, message)) }
    static func failed(_ message: String) -> BusFault { BusFault(Refusal(.failed, message)) }
    static func limitExceeded(_ message: String) -> BusFault { BusFault(Refusal(.limitExceeded, message)) }

    /// Why what a caller wants to observe, or a name, is not acceptable.
    static func refused(_ error: NotifyBusError) -> BusFault {
        error.code == .limitExceeded ? .limitExceeded(error.description) : .invalidArguments(error.description)
    }

    static func unknownMethod(_ call: BusCall) -> BusFault {
        BusFault(
            name: "org.freedesktop.DBus.Error.UnknownMethod",
            message: "There is no method '\(call.interface).\(call.member)' at \(call.path)."
        )
    }

    static func unknownProperty(_ name: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.UnknownProperty", message: "There is no property '\(name)'.")
    }
}

extension Subjects {
    /// Checks names and prefixes received over the bus.
    init(namesOnBus names: [String], prefixes: [String]) throws(BusFault) {
        do throws(NotifyBusError) {
            try self.init(names: names, prefixes: prefixes)
        } catch {
            throw .refused(error)
        }
    }
}

extension Receiver {
    /// Gives memory back that was freed, of which the caches would keep some.
    func giveMemoryBack() {
        emptyCaches()
        linux_give_memory_back()
    }
}
