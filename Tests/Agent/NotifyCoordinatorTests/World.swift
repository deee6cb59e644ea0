// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// A coordinator's surroundings, as values: a bus that handles requests in order, observers that answer, and processes
/// that run or are stopped. Events that are under way happen when the test says so.
struct World {
    var coordinator: Coordinator
    var time: Int64 = 0
    /// The bus's answers in order, and those of the observers and the kernel, each in its own order.
    private(set) var bus: [Event] = []
    private(set) var observers: [ConnectionID: [Event]] = [:]
    private(set) var kernel: [Event] = []
    private(set) var rules: Set<NotifyName> = []
    private(set) var prefixRules: Set<NamePrefix> = []
    private(set) var states: [ConnectionID: LifecycleState] = [:]
    private(set) var delivered: [ConnectionID: [NotifyName]] = [:]
    private(set) var still: Set<ProcessID> = []
    private(set) var answers: [CallID: Effect.Answer] = [:]
    private(set) var refusals: [CallID: Refusal] = [:]
    /// The questions whether all changes are in force that have been answered.
    private(set) var changesInForce: [UInt64] = []
    private(set) var longestRequest = 0
    /// Why the bus accepts no rule, if it does not.
    var ruleFailure: String?
    /// Changes of states, as they were announced.
    private(set) var announced: [Effect.StateChange] = []
    /// Who has decided on the states of connections, as these were told.
    private(set) var deciders: [ConnectionID: [Decider]] = [:]
    /// The states that connections were to remember, one call after the other.
    private(set) var kept: [ConnectionID: [[String]]] = [:]
    var answersKeeping = true
    /// Connections that were to be watched, again if they registered again.
    private(set) var begun: [ConnectionID] = []
    /// Connections that have yet to register with the relay, and are watched.
    private(set) var watchedEnds: Set<ConnectionID> = []
    /// Whether what another agent has handed over is subscribed.
    private(set) var isInherited = false
    /// Processes whose facts were to be found out.
    private(set) var present: [ProcessID] = []
    private(set) var hasObservers = false
    private(set) var memoryReleases = 0
    /// Processes of which it is watched whether they are stopped.
    private(set) var watched: Set<ProcessID> = []
    /// How often it was said so.
    private(set) var looks = 0
    private var lastCall: UInt64 = 0
    /// The result of `freeze`.
    var freezeOutcome = Event.FreezeOutcome.frozen

    /// Names of interest that have observers, as reported.
    private(set) var wanted: Set<NotifyName> = []

    /// Programs that nap and are stopped, and those of their processes that are named.
    private(set) var frozenPrograms: [NapProgram: [Int32]] = [:]
    /// When the coordinator is to be called about naps, and what is to be found out until then.
    var napAlarm: Int64?
    /// When the coordinator itself is to be called.
    private(set) var alarm: Int64?
    private(set) var useQuestion: UseQuestion?
    /// What observers were told, and what was stopped, in order.
    var log: [String] = []

    init(_ quotas: Quotas = Quotas(), interests: Set<NotifyName> = []) {
        self.init { ($0.quotas, $0.interests) = (quotas, interests) }
    }

    init(_ change: (inout Coordinator.Configuration) -> Void) {
        var configuration = Coordinator.Configuration()
        change(&configuration)
        coordinator = Coordinator(configuration)
    }

    init(_ configuration: Coordinator.Configuration) { coordinator = Coordinator(configuration) }

    var isAtRest: Bool { bus.isEmpty && kernel.isEmpty && observers.values.allSatisfy(\.isEmpty) }

    mutating func call() -> CallID {
        lastCall += 1
        return CallID(lastCall)
    }

    mutating func send(_ event: Event) {
        for effect in coordinator.handle(event, at: Timestamp(nanoseconds: time)) { perform(effect) }
        #expect(hasObservers != coordinator.directory.observers.isEmpty)
    }

    private mutating func perform(_ effect: Effect) {
        switch effect {
        case .answer(let call, let answer):
            #expect(answers.updateValue(answer, forKey: call) == nil && refusals[call] == nil)
        case .refuse(let call, let refusal):
            #expect(refusals.updateValue(refusal, forKey: call) == nil && answers[call] == nil)
        case .tell(let observer, let state, _, let marks):
            let id = observer.id
            if marks { bus.append(.markIsReached(id)) }
            states[id] = state
            log.append("tell \(state)")
            observers[id, default: []].append(.told(id, .done(dropped: nil, isHoldingBack: false)))
        case .changesAreInForce(let number): changesInForce.append(number)
        case .announce(let change): announced.append(change)
        case .tellDecider(let observer, let decider): deciders[observer.id, default: []].append(decider)
        case .keepStates(let observer, let states):
            kept[observer.id, default: []].append(states.map { "\($0.name) \($0.entry.value)" })
            if answersKeeping { observers[observer.id, default: []].append(.statesAreKept(observer.id)) }
        case .begin(let id): begun.append(id)
        case .watchEnd(let id, _): #expect(watchedEnds.insert(id).inserted)
        case .ignoreEnd(let id, _): watchedEnds.remove(id)
        case .isInherited:
            #expect(!isInherited)
            isInherited = true
        case .present(let process): present.append(process)
        case .observersCome:
            #expect(!hasObservers)
            hasObservers = true
        case .observersHaveGone:
            #expect(hasObservers)
            hasObservers = false
        case .giveMemoryBack: memoryReleases += 1
        case .look(let process, true):
            watched.insert(process)
            looks += 1
        case .look(let process, false): watched.remove(process)
        case .deliver(let observer, let names):
            delivered[observer.id, default: []] += names
            log += names.map { "deliver \($0)" }
        case .awaitHeldBack(let id): bus.append(.nothingIsHeldBack(id))
        case .subscribe(let ticket, let names, let prefixes):
            longestRequest = max(longestRequest, names.count + prefixes.count)
            if ruleFailure == nil {
                for name in names { #expect(rules.insert(name).inserted, "\(name)") }
                for prefix in prefixes { #expect(prefixRules.insert(prefix).inserted, "\(prefix)") }
            }
            bus.append(.rulesAreSet(ticket, failure: ruleFailure))
        case .unsubscribe(let ticket, let names, let prefixes):
            longestRequest = max(longestRequest, names.count + prefixes.count)
            for name in names { #expect(rules.remove(name) != nil, "\(name)") }
            for prefix in prefixes { #expect(prefixRules.remove(prefix) != nil, "\(prefix)") }
            if let ticket { bus.append(.rulesAreSet(ticket, failure: nil)) }
        case .freeze(let process, _):
            if freezeOutcome == .frozen { still.insert(process) }
            kernel.append(.froze(process, freezeOutcome))
        case .thaw(let process):
            still.remove(process)
            kernel.append(.thawed(process, failure: nil))
        case .freezeProgram(let program, let processes):
            #expect(frozenPrograms.updateValue(processes.map(\.pid), forKey: program) == nil)
            log.append("freeze \(program)")
        case .thawProgram(let program):
            #expect(frozenPrograms.removeValue(forKey: program) != nil)
            log.append("thaw \(program)")
        case .napAlarm(let time): napAlarm = time
        case .alarm(let time): alarm = time
        case .followUses(let question): useQuestion = question
        case .drain(let id): kernel.append(.drained(id))
        case .interest(let name, true): #expect(wanted.insert(name).inserted, "\(name)")
        case .interest(let name, false): #expect(wanted.remove(name) != nil, "\(name)")
        default: break
        }
    }

    /// Something that is under way happens, chosen at random. A stopped observer answers nothing.
    mutating func step(using random: inout some RandomNumberGenerator) {
        let awake = observers.filter { id, answers in
            !answers.isEmpty && coordinator.process(of: id).map { !still.contains($0) } ?? true
        }
        var choices: [(inout World) -> Event] = awake.keys.sorted().map { id in
            { $0.observers[id, default: []].removeFirst() }
        }
        if !bus.isEmpty { choices.append { $0.bus.removeFirst() } }
        if !kernel.isEmpty { choices.append { $0.kernel.removeFirst() } }
        guard let choice = choices.randomElement(using: &random) else { return }
        send(choice(&self))
    }

    /// The bus answers what it was asked first.
    mutating func stepBus() { if !bus.isEmpty { send(bus.removeFirst()) } }

    /// Every observer answers what it was told first.
    mutating func stepObservers() {
        for id in observers.keys.sorted() where observers[id]?.isEmpty == false {
            send(observers[id, default: []].removeFirst())
        }
    }

    mutating func settle() {
        var random = SystemRandomNumberGenerator()
        settle(using: &random)
    }

    /// Everything that is under way happens.
    mutating func settle(using random: inout some RandomNumberGenerator) {
        var steps = 0
        while !isAtRest, steps < 100_000 {
            step(using: &random)
            steps += 1
        }
        #expect(isAtRest, "\(bus) \(observers) \(kernel) \(still)")
    }

    // MARK: - Shorthands

    static func process(_ pid: Int32, user: UInt32 = 1000) -> ProcessID {
        ProcessID(pid: pid, startTime: 1, user: user)
    }

    mutating func register(
        _ name: String,
        _ process: ProcessID,
        _ names: [String] = [],
        prefixes: [String] = [],
        application: String = "",
        isRelayed: Bool = false,
        _ change: (inout Newcomer.Statement) -> Void = { _ in }
    ) throws -> CallID {
        var statement = Newcomer.Statement(try Subjects(names: names, prefixes: prefixes))
        change(&statement)
        let call = call()
        let facts = Newcomer.ProcessFacts(id: process, application: application)
        let newcomer = Newcomer(
            name: name,
            user: process.user,
            process: facts,
            hasSocket: !isRelayed,
            isRelayed: isRelayed,
            statement: statement
        )
        send(.register(call, newcomer))
        return call
    }

    mutating func set(
        _ target: String,
        _ state: LifecycleState,
        freezes: Bool = false,
        by user: UInt32 = 1000
    ) throws -> CallID {
        let call = call()
        let target = try #require(Target(target))
        send(.setState(call, by: Caller(user: user), target, state, freezes: freezes, strangers: []))
        return call
    }
}
