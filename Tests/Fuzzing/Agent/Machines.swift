// SPDX-License-Identifier: Apache-2.0

import FuzzDriver
import NotifyAgent
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// The coordinator, told anything in any order: also results that it has not asked for, but not those of requests to
/// the bus, which come once for each.
enum CoordinatorMachine {
    static func run(_ choices: Choices) {
        var choices = choices
        var configuration = Coordinator.Configuration()
        configuration.quotas.connections = 3
        configuration.quotas.names = 6
        configuration.quotas.prefixes = 3
        configuration.quotas.calls = 4
        configuration.quotas.pendingNames = 5
        configuration.prefixRules = 2
        configuration.sources = ["logind", "x11"]
        configuration.interests = ["com.apple.system.timezone"]
        configuration.events = ["com.apple.system.timezone"]
        configuration.pinnedStates = ["com.example.c": .max]
        var coordinator = Coordinator(configuration)
        var results: [Event] = []
        var lastCall: UInt64 = 0
        var unanswered: Set<CallID> = []
        var time: Int64 = choices.once(in: 4) ? .max - 1 << 40 : 0
        while !choices.isOver {
            time &+= Int64(choices.byte()) << 24
            let event: Event
            if !results.isEmpty, !choices.once(in: 3) {
                event = results.remove(at: choices.number(below: results.count))
            } else {
                event = unexpected(&choices, &lastCall)
                if case let call? = event.call { unanswered.insert(call) }
            }
            if choices.once(in: 24) {
                results = [.inherit(handedOver(coordinator.heritage), facts(&choices))]
                coordinator = Coordinator(configuration)
                unanswered = []
                continue
            }
            for effect in coordinator.handle(event, at: Timestamp(nanoseconds: time, wallClock: choices.number())) {
                switch effect {
                case .answer(let call, _), .refuse(let call, _):
                    guard unanswered.remove(call) != nil else { fail("a call was answered twice, or never made") }
                case .subscribe(let ticket, _, _):
                    results.append(.rulesAreSet(ticket, failure: choices.once(in: 6) ? "no" : nil))
                case .unsubscribe(let ticket?, _, _): results.append(.rulesAreSet(ticket, failure: nil))
                case .tell(let observer, _, _, let marks):
                    if marks { results.append(.markIsReached(observer.id)) }
                    results.append(.told(observer.id, reply(&choices)))
                case .deliver(let observer, let names) where !names.isEmpty: results.append(.delivered(observer.id))
                case .keepStates(let observer, _): results.append(.statesAreKept(observer.id))
                case .awaitHeldBack(let id): results.append(.nothingIsHeldBack(id))
                case .freeze(let process, _): results.append(.froze(process, outcome(&choices)))
                case .freezeProgram(let program, let members): results.append(.frozeProgram(program, members))
                case .thaw(let process): results.append(.thawed(process, failure: choices.once(in: 6) ? "no" : nil))
                case .drain(let id): results.append(.drained(id))
                default: break
                }
            }
            if results.count > 64 { results.removeFirst() }
        }
        _ = coordinator.list
    }

    private static let connections = (0..<6).map { ConnectionID(UInt64($0)) } + [ConnectionID(.max)]
    private static let processes = [
        ProcessID(pid: 1, startTime: 1, user: 0), ProcessID(pid: 7, startTime: 1, user: 1_000),
        ProcessID(pid: 7, startTime: .max, user: 1_000), ProcessID(pid: .max, startTime: 0, user: .max),
    ]
    private static let senders = [":1.1", ":1.2", ":1.3", ":1.4", ""]

    /// What the next agent reads of what this one leaves.
    private static func handedOver(_ heritage: Heritage) -> Heritage {
        var estate = Estate()
        (estate.heritage, estate.agent) = (heritage, ":1.5")
        guard let bytes = estate.bytes, let read = try? Estate(reading: bytes) else { fail("a heritage can't be read") }
        guard read.heritage.connections.count <= heritage.connections.count else { fail("a heritage grows") }
        return read.heritage
    }

    private static func facts(_ choices: inout Choices) -> [Newcomer.ProcessFacts] {
        processes.filter { _ in !choices.once(in: 4) }.map {
            Newcomer.ProcessFacts(id: $0, application: "a", session: nil, isWatched: !choices.once(in: 4))
        }
    }

    /// What no agent has written.
    private static func heritage(_ choices: inout Choices) -> Heritage {
        var heritage = Heritage()
        for _ in 0..<choices.number(below: 4) {
            var connection = Heritage.Connection(process: choices.pick(processes))
            connection.name = choices.pick(senders)
            connection.subjects = choices.subjects()
            (connection.isParked, connection.state) = (choices.once(in: 2), choices.state())
            (connection.stateAfterParking, connection.pending) = (choices.state(), choices.names())
            (connection.dropped, connection.since) = (choices.number(), choices.number())
            connection.person = choices.once(in: 2) ? choices.state() : nil
            connection.decision = Decision(choices.state(), by: .source(choices.pick(["logind", "x11", ""])))
            heritage.connections.append(connection)
        }
        for id in processes where choices.once(in: 2) {
            var process = Heritage.Process(id)
            process.wish = choices.once(in: 2) ? choices.state() : nil
            process.frozenFor = choices.once(in: 2) ? choices.pick([0, 1_000, .max]) : nil
            heritage.processes.append(process)
        }
        let entry = NameStateTable.Entry(value: choices.number(), stamp: choices.number())
        heritage.states.append(Heritage.State(name: choices.name(), entry: entry))
        heritage.areNapsOff = choices.once(in: 2)
        return heritage
    }

    private static func reply(_ choices: inout Choices) -> Event.Reply {
        switch choices.number(below: 6) {
        case 0: .failed("no")
        case 1: .namesAdded
        case 2: .gone
        default: .done(dropped: choices.once(in: 4) ? nil : choices.number(), isHoldingBack: choices.once(in: 4))
        }
    }

    private static func outcome(_ choices: inout Choices) -> Event.FreezeOutcome {
        choices.pick([.frozen, .frozen, .denied, .failed("no")])
    }

    private static func caller(_ choices: inout Choices) -> Caller {
        Caller(user: choices.pick([0, 1_000, .max]))
    }

    private static func target(_ choices: inout Choices) -> Target {
        choices.pick([
            .process(7), .process(1), .process(.max), .connection(":1.1"), .connection(":1.9"), .application("a"),
        ])
    }

    private static func fact(_ choices: inout Choices) -> Fact {
        switch choices.number(below: 3) {
        case 0: return .focus([FocusedProcess(pid: choices.pick([1, 7, .max]), application: "a", user: 1_000)])
        case 1: return .stillness(process: choices.pick([1, 7, .min]), isStill: choices.once(in: 2))
        default:
            var logins = Logins()
            var session = Logins.Session(user: 1_000)
            (session.isActive, session.isLocked) = (choices.once(in: 2), choices.once(in: 2))
            logins.sessions["1"] = session
            (logins.isAsleep, logins.longestDelay) = (choices.once(in: 2), choices.number())
            return .logins(logins)
        }
    }

    private static func newcomer(_ choices: inout Choices) -> Newcomer {
        let process = choices.pick(processes)
        var statement = Newcomer.Statement(choices.subjects())
        statement.state = choices.once(in: 2) ? choices.state() : nil
        statement.previous = choices.pick(senders)
        statement.earlier = choices.once(in: 4) ? [":1.1", ":1.2"] : []
        statement.decider = choices.text()
        statement.followsDesktop = choices.once(in: 2)
        if choices.once(in: 4) {
            let entry = NameStateTable.Entry(value: choices.number(), stamp: choices.number())
            statement.states.append((choices.name(), entry))
        }
        return Newcomer(
            name: choices.pick(senders),
            user: process.user,
            process: Newcomer.ProcessFacts(
                id: process,
                application: choices.pick(["", "a"]),
                session: choices.once(in: 2) ? "1" : nil,
                isWatched: !choices.once(in: 4)
            ),
            hasSocket: choices.once(in: 2),
            isRelayed: choices.once(in: 4),
            statement: statement
        )
    }

    private static func unexpected(_ choices: inout Choices, _ lastCall: inout UInt64) -> Event {
        func call() -> CallID {
            lastCall += 1
            return CallID(lastCall)
        }
        let connection = choices.pick(connections)
        let process = choices.pick(processes)
        let sender = choices.pick(senders)
        switch choices.number(below: 45) {
        case 0...3: return .register(call(), newcomer(&choices))
        case 4, 5: return .addNames(call(), from: sender, choices.subjects())
        case 6: return .removeNames(call(), from: sender, choices.subjects())
        case 7: return .report(call(), from: sender, choices.state())
        case 8: return .followDesktop(call(), from: sender, choices.once(in: 2))
        case 9, 10:
            return .setState(
                call(),
                by: caller(&choices),
                target(&choices),
                choices.state(),
                freezes: choices.once(in: 2),
                strangers: choices.once(in: 4) ? [process] : []
            )
        case 11: return .release(call(), by: caller(&choices), choices.once(in: 2) ? nil : target(&choices))
        case 12: return .setNameState(call(), by: caller(&choices), choices.name(), choices.number())
        case 43:
            return .swapNameState(call(), by: caller(&choices), choices.name(), choices.number(), choices.number())
        case 13: return .getNameState(call(), choices.name())
        case 14, 15: return .markIsReached(connection)
        case 16: return .told(connection, reply(&choices))
        case 17: return .delivered(connection)
        case 18: return .nothingIsHeldBack(connection)
        case 19: return .froze(process, outcome(&choices))
        case 20: return .thawed(process, failure: nil)
        case 21: return .drained(connection)
        case 22: return .found(connection, choices.names())
        case 23, 24: return .posted(choices.name())
        case 25: return .connectionEnded(connection)
        case 26: return .processEnded(process)
        case 27: return .processStopped(process)
        case 28: return .processContinued(process)
        case 29: return .eventState(choices.name(), choices.once(in: 2) ? nil : choices.number())
        case 30:
            var news = SourceNews()
            news.condition = choices.pick([nil, .live, .live, .off("gone")])
            news.fact = fact(&choices)
            news.count = UInt64(choices.byte())
            return .news([choices.pick(["logind", "x11", "other"]): news])
        case 31: return .sourceWasReset(choices.pick(["logind", "x11"]), nil)
        case 32: return .awaitChanges(choices.number())
        case 33, 34: return .alarm
        case 35: return .inherit(heritage(&choices), facts(&choices))
        case 36: return choices.pick([.heritageIsOld, .heritageIsPartial, .hearForRelayed, .leaveToRelay])
        case 37: return .statesAreKept(connection)
        case 38: return .missed(connection, choices.names())
        case 39: return .additionWasRefused(from: sender)
        case 40: return .setNaps(call(), by: caller(&choices), choices.once(in: 2))
        case 41: return .isToEnd(process)
        case 42: return .agentObserves(choices.subjects())
        default: return choices.once(in: 8) ? .ending(keeping: []) : .alarm
        }
    }
}

extension Event {
    /// The call that this is.
    fileprivate var call: CallID? {
        switch self {
        case .register(let call, _), .addNames(let call, _, _), .removeNames(let call, _, _), .report(let call, _, _),
            .followDesktop(let call, _, _), .setState(let call, _, _, _, _, _), .release(let call, _, _),
            .setNameState(let call, _, _, _), .swapNameState(let call, _, _, _, _), .getNameState(let call, _),
            .setNaps(let call, _, _):
            call
        default: nil
        }
    }
}

/// The launcher, likewise.
enum LauncherMachine {
    static func run(_ choices: Choices) {
        var choices = choices
        var launcher = Launcher()
        var time: Int64 = choices.once(in: 4) ? .max - 1 << 40 : 0
        var numbers: [(LaunchID, UInt64)] = []
        while !choices.isOver {
            time &+= Int64(choices.byte()) << 24
            let event = event(&choices, numbers, time)
            for effect in launcher.handle(event, at: Timestamp(nanoseconds: time)) {
                if case .start(let id, let number, _, _, _) = effect { numbers.append((id, number)) }
            }
            if numbers.count > 8 { numbers.removeFirst() }
        }
        _ = launcher.reports
    }

    private static func entries(_ choices: inout Choices) -> [LaunchEntry] {
        (0..<choices.number(below: 4)).map { index in
            var entry = LaunchEntry(
                title: "entry\(index)",
                action: choices.pick([.unit("a.service"), .command(["/bin/true"]), .activation("org.example.A")])
            )
            entry.subjects = choices.subjects()
            entry.onBusy = choices.pick(LaunchEntry.BusyRule.allCases)
            // As large as the files allow.
            entry.settle = choices.pick([0, 1, 86_400_000_000_000])
            entry.limit = LaunchEntry.Limit(
                starts: choices.pick([1, 2, 1_000]),
                window: choices.pick([1, 10_000_000_000, 86_400_000_000_000])
            )
            entry.isEnabled = !choices.once(in: 6)
            return entry
        }
    }

    private static func event(_ choices: inout Choices, _ numbers: [(LaunchID, UInt64)], _ time: Int64)
        -> Launcher.Event
    {
        let ids = (1...5).map { LaunchID(UInt64($0)) }
        let id = choices.pick(ids)
        let connection = ConnectionID(UInt64(choices.number(below: 3)))
        let begun = numbers.isEmpty || choices.once(in: 4) ? (id, choices.number()) : choices.pick(numbers)
        switch choices.number(below: 20) {
        case 0: return .load(entries(&choices))
        case 1: return .manager(obstacle: choices.once(in: 3) ? "none" : nil)
        case 2, 3: return .subscribed(id, failure: choices.once(in: 6) ? "no" : nil)
        case 4, 5: return .heard(choices.name(), Array(ids.prefix(choices.number(below: 5))))
        case 6, 7: return .activity(id, choices.once(in: 2))
        case 8: return .accepted(begun.0, number: begun.1)
        case 9, 10: return .ended(begun.0, number: begun.1, outcome(&choices, time))
        case 11: return .observes(connection, [id], choices.subjects(), isNew: choices.once(in: 2))
        case 12: return .mayObserve(connection, [id], choices.subjects(), isNew: choices.once(in: 2))
        case 13: return .programIsKnown(id, [(connection, choices.subjects())])
        case 14: return .marked(LaunchMark(connection, number: choices.number()))
        case 15: return .left(connection)
        case 16: return .conditions(id, hold: choices.once(in: 2))
        case 17: return .holdBack(choices.once(in: 3))
        default: return .alarm
        }
    }

    private static func outcome(_ choices: inout Choices, _ time: Int64) -> Launcher.Outcome {
        switch choices.number(below: 8) {
        case 0: .begun(at: Int64(bitPattern: choices.number()))
        case 1: .begun(at: time)
        case 2: .wasRunning
        case 3: .failed("no")
        case 4: .neverRan("no")
        case 5: .canceled
        case 6: .programFailed("no")
        default: .done
        }
    }
}

/// The observer's half of the protocol, with an agent that says what it likes.
enum ObserverMachine {
    static func run(_ choices: Choices) {
        var choices = choices
        var observer = ObserverLifecycle()
        var unanswered: Set<UInt32> = []
        var lastSerial: UInt32 = 0
        var lastRequest = 0
        while !choices.isOver {
            let event = event(&choices, &lastSerial, &lastRequest)
            switch event {
            case .setState(_, _, let call), .deliver(_, let call): unanswered.insert(call.serial)
            default: break
            }
            for effect in observer.handle(event, names: { choices.names() }) {
                switch effect {
                case .answer(let call), .postpone(let call), .acknowledge(let call), .refuse(let call):
                    guard unanswered.remove(call.serial) != nil else { fail("a call was answered twice") }
                case .putRules: observer.rulesAreAsked(choices.number(below: 3))
                default: break
                }
            }
        }
    }

    private static func event(_ choices: inout Choices, _ lastSerial: inout UInt32, _ lastRequest: inout Int)
        -> ObserverLifecycle.Event
    {
        let agents = [":1.1", ":1.2", ""]
        let agent = choices.pick(agents)
        lastSerial += 1
        let call = ObserverLifecycle.Call(sender: agent, serial: lastSerial, wantsReply: choices.once(in: 2))
        switch choices.number(below: 20) {
        case 0:
            return .connected(
                uniqueName: ":1.9",
                wasCutOff: choices.once(in: 2),
                isOnAnotherBus: choices.once(in: 4),
                needsRelay: choices.once(in: 3)
            )
        case 1: return .lost
        case 2, 3: return .found(search: choices.number(below: 4), agent: choices.once(in: 4) ? nil : agent)
        case 4, 5:
            let answer = AgentInterface.Register.Answer(
                state: choices.state(),
                pending: choices.texts(),
                isComplete: choices.once(in: 2)
            )
            return .registered(agent: agent, choices.once(in: 4) ? nil : answer)
        case 6: return .ownerChanged(agent)
        case 7: return .decided(choices.text(), by: agent)
        case 8, 9: return .setState(choices.state(), additions: UInt32(truncatingIfNeeded: choices.number()), call)
        case 10: return .deliver(choices.texts(), call)
        case 11: return .marked(by: agent)
        case 12, 13: return .ruleAnswered
        case 14: return .barrierPassed(choices.number(below: 6))
        case 15: return .deadlinePassed
        case 16: return .says(.observes(names: choices.texts(), prefixes: choices.texts()))
        case 17: return .says(.followsDesktop(choices.once(in: 2)))
        case 18: return .additionAnswered(Int(truncatingIfNeeded: choices.number()))
        default:
            lastRequest += 1
            return .asks(request: lastRequest)
        }
    }
}
