// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

/// The real launcher with one entry, and models of what surrounds it: the bus, which keeps the order of what it passes on;
/// the service manager, whose reports come in an order of their own; and the program, which observes what starts it.
struct LaunchScene: Explorable, Hashable {
    enum Choice: Hashable {
        /// A program posts a name.
        case post(Int)
        /// The bus processes what the agent has written next.
        case bus
        /// The agent reads what the bus has passed on next.
        case agent
        /// The service manager begins with the start that it was asked for, or can't.
        case begin(fails: Bool)
        /// The agent reads what the service manager has reported next.
        case report
        /// The program observes the names, and registers.
        case register
        case exit
        /// The service manager goes away, and has taken the start that it was asked for, or not.
        case leave(takesStart: Bool)
        case comeBack
        case time
    }

    private enum Request: Hashable {
        case hold(LaunchID, Subjects)
        case release(Subjects)
        case mark(LaunchMark)
    }

    private enum Message: Hashable {
        case held(LaunchID)
        case heard(Int)
        case marked(LaunchMark)
        case observes(ConnectionID)
        case left(ConnectionID)
    }

    private enum Report: Hashable {
        case activity(Bool)
        case accepted(UInt64)
        case ended(UInt64, isDone: Bool)
        case away
        case back
        /// Whether the program runs, as the agent asks when the service manager is back.
        case found(Bool)
    }

    private static let names: [NotifyName] = ["com.example.a", "com.example.b"]
    private static let subjects = Subjects(names: Set(names))
    private static let id = LaunchID(1)

    private var launcher = Launcher()
    private var now: Int64 = 0
    private var alarm: Int64?
    private var toBus: [Request] = []
    private var rules = Subjects()
    private var inbox: [Message] = []
    private var reports: [Report] = []
    /// The start that the service manager was asked for.
    private var job: UInt64?
    private var isRunning = false
    private var isManagerThere = true
    /// Whether the service manager reports what becomes of the program.
    private var isWatched = true
    /// Whether the agent has yet to learn whether the program runs.
    private var isWaking = false
    /// The program's connection; nil if it does not observe.
    private var connection: ConnectionID?
    /// The one that has registered.
    private var knownConnection: ConnectionID?
    /// Whether the agent knows from where on the connection hears posts by itself.
    private var isMarked = true
    /// What the agent has yet to learn of the end of the last program.
    private var endsUnderWay = 0
    private var lastConnection: UInt64 = 10
    /// Posted while no program observed, and neither told to one since nor followed by a start.
    private var owed: Set<Int> = []
    /// Posted while the agent could not know whether a program heard it: such a post may start another, or be lost with
    /// the program that ended.
    private var open: Set<Int> = []
    /// What the agent has heard since it asked for the last start: the program may have begun before that was posted.
    private var heardSince: Set<Int> = []
    private var postsLeft: Int
    private var failuresLeft: Int
    private var exitsLeft: Int
    private var departuresLeft: Int
    private(set) var failure: String?
    private(set) var notes: [String] = []
    private let isNoted: Bool
    private let mutation: Mutation?

    /// How often each may happen at most.
    struct Moves {
        var posts: Int
        var failures: Int
        var exits: Int
        /// How often the service manager goes away.
        var departures = 0
    }

    init(_ moves: Moves, mutation: Mutation?, isNoted: Bool) {
        (postsLeft, failuresLeft, exitsLeft) = (moves.posts, moves.failures, moves.exits)
        departuresLeft = moves.departures
        self.isNoted = isNoted
        self.mutation = mutation
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        entry.subjects = LaunchScene.subjects
        entry.limit = .init(starts: 1_000, window: 1)
        feed(.manager(obstacle: nil))
        feed(.load([entry]))
        feed(.activity(LaunchScene.id, false))
        while let choice = choices.first(where: LaunchScene.isUnderWay) { take(choice) }
        notes = []
    }

    var copy: LaunchScene { self }

    var fingerprint: Fingerprint {
        var hasher = Hasher()
        hash(into: &hasher)
        return Fingerprint(hasher)
    }

    // MARK: - What can happen

    static func isUnderWay(_ choice: Choice) -> Bool {
        switch choice {
        case .post, .exit, .leave, .begin(fails: true): false
        case .bus, .agent, .begin(fails: false), .report, .register, .comeBack, .time: true
        }
    }

    var choices: [Choice] {
        var all: [Choice] = []
        if !toBus.isEmpty { all.append(.bus) }
        if !inbox.isEmpty { all.append(.agent) }
        if !reports.isEmpty { all.append(.report) }
        if job != nil { all.append(.begin(fails: false)) }
        if !isManagerThere { all.append(.comeBack) }
        if isRunning, connection == nil { all.append(.register) }
        if all.isEmpty, alarm != nil { all.append(.time) }
        if job != nil, failuresLeft > 0 { all.append(.begin(fails: true)) }
        if isRunning, exitsLeft > 0 { all.append(.exit) }
        if departuresLeft > 0, isManagerThere {
            all.append(.leave(takesStart: true))
            if isStartUntold { all.append(.leave(takesStart: false)) }
        }
        if postsLeft > 0 { for name in LaunchScene.names.indices { all.append(.post(name)) } }
        return all
    }

    // MARK: - What happens

    @discardableResult
    mutating func take(_ choice: Choice) -> Int {
        note("\(choice)")
        switch choice {
        case .post(let name):
            postsLeft -= 1
            post(name)
        case .bus: processRequest()
        case .agent: readMessage()
        case .report: readReport()
        case .begin(let fails): begin(fails: fails)
        case .register:
            lastConnection += 1
            let new = ConnectionID(lastConnection)
            (connection, isMarked) = (new, false)
            inbox.append(.observes(new))
        case .exit:
            exitsLeft -= 1
            exit()
        case .leave(let takesStart):
            departuresLeft -= 1
            leave(takesStart: takesStart)
        case .comeBack:
            isManagerThere = true
            reports.append(.back)
        case .time:
            now = max(now, alarm ?? now)
            alarm = nil
            feed(.alarm)
        }
        checkAtRest()
        return 1
    }

    private mutating func post(_ name: Int) {
        if connection == nil {
            // Posts before the agent hears again what a program heard are lost.
            if endsUnderWay > 0 || isComingBack(LaunchScene.names[name]) {
                open.insert(name)
            } else {
                owed.insert(name)
            }
        } else if !isMarked || isWaking {
            open.insert(name)
        }
        if rules.contains(LaunchScene.names[name]) { inbox.append(.heard(name)) }
    }

    /// Whether the bus has yet to learn that the agent hears a name again.
    private func isComingBack(_ name: NotifyName) -> Bool {
        toBus.contains { if case .hold(_, let subjects) = $0 { subjects.contains(name) } else { false } }
    }

    private mutating func processRequest() {
        switch toBus.removeFirst() {
        case .hold(let id, let subjects):
            rules.formUnion(subjects)
            inbox.append(.held(id))
        case .release(let subjects): rules.subtract(subjects)
        case .mark(let mark): inbox.append(.marked(mark))
        }
    }

    private mutating func readMessage() {
        switch inbox.removeFirst() {
        case .held(let id): feed(.subscribed(id, failure: nil))
        case .heard(let number):
            let name = LaunchScene.names[number]
            if isWaking, mutation == .launcherMissesPosts { break }
            heardSince.insert(number)
            feed(.heard(name, launcher.entries(for: name).map(\.0)))
        case .observes(let connection):
            knownConnection = connection
            // While there is no service manager, the agent does not know whose unit it is in.
            if isWaking, !isWatched {
                isMarked = connection == self.connection || isMarked
            } else {
                feed(.observes(connection, [LaunchScene.id], LaunchScene.subjects, isNew: true))
            }
        case .marked(let marked):
            if marked.connection == connection {
                isMarked = true
                if !isWaking { open = [] }
            }
            feed(.marked(marked))
        case .left(let connection):
            endsUnderWay -= 1
            if knownConnection == connection { knownConnection = nil }
            feed(.left(connection))
        }
    }

    private mutating func readReport() {
        switch reports.removeFirst() {
        case .activity(let isActive):
            if !isActive { endsUnderWay -= 1 }
            feed(.activity(LaunchScene.id, isActive))
        case .accepted(let number): feed(.accepted(LaunchScene.id, number: number))
        case .ended(let number, let isDone):
            feed(.ended(LaunchScene.id, number: number, isDone ? .done : .neverRan("it can't")))
        case .away: feed(.manager(obstacle: "it is away"))
        case .back: feed(.manager(obstacle: nil))
        case .found(let isActive):
            isWaking = false
            if isActive, let knownConnection {
                feed(.observes(knownConnection, [LaunchScene.id], LaunchScene.subjects, isNew: false))
            }
            feed(.activity(LaunchScene.id, isActive))
        }
    }

    /// Whether the agent can't know yet that a start was accepted.
    private var isStartUntold: Bool { job.map { reports.contains(.accepted($0)) } ?? false }

    /// It has reported all that happened before, and carries out what it has accepted.
    private mutating func leave(takesStart: Bool) {
        if let number = job {
            if takesStart {
                begin(fails: false)
                reports.removeAll { $0 == .ended(number, isDone: true) }
                _ = reports.popLast()
            } else {
                reports.removeAll { $0 == .accepted(number) }
                job = nil
            }
        }
        (isManagerThere, isWatched, isWaking) = (false, false, true)
        // From now on the agent can't tell whether a program has heard what it hears itself.
        if connection != nil { for case .heard(let name) in inbox { open.insert(name) } }
        reports.append(.away)
    }

    private mutating func begin(fails: Bool) {
        guard let number = job else { return }
        job = nil
        if fails {
            failuresLeft -= 1
            reports.append(.ended(number, isDone: false))
            return
        }
        isRunning = true
        owed = []
        // The agent can't know that these were posted before.
        open.formUnion(heardSince)
        for case .heard(let name) in inbox { open.insert(name) }
        reports += [.activity(true), .ended(number, isDone: true)]
    }

    private mutating func exit() {
        isRunning = false
        if isWatched {
            reports.append(.activity(false))
            endsUnderWay += 1
        }
        guard let old = connection else { return }
        // The program may have heard what the agent reads only when it knows of the exit.
        for case .heard(let name) in inbox { open.insert(name) }
        if inbox.contains(.observes(old)) || isWaking {
            // It will be told, but does not read any more.
            open.formUnion(owed)
            owed = []
        }
        connection = nil
        isMarked = true
        inbox.append(.left(old))
        endsUnderWay += 1
    }

    private mutating func feed(_ event: Launcher.Event) {
        note("  agent: \(event)")
        for effect in launcher.handle(event, at: Timestamp(nanoseconds: now)) {
            note("    → \(effect)")
            switch effect {
            case .subscribe(let id, let subjects): toBus.append(.hold(id, subjects))
            case .unsubscribe(_, let subjects): toBus.append(.release(subjects))
            case .mark(let mark): toBus.append(.mark(mark))
            case .start(_, let number, _, _, _):
                if owed.isEmpty, open.isEmpty { fail("it is started for what it has heard") }
                if isRunning { fail("it is started while it runs") }
                heardSince = []
                // What is sent to one that has gone is lost.
                if reports.contains(.away) { break }
                job = number
                reports.append(.accepted(number))
            case .deliver(let receiver, let names):
                guard receiver == connection, mutation != .launcherTellsNothing else { break }
                for name in names { _ = LaunchScene.names.firstIndex(of: name).map { owed.remove($0) } }
            case .alarm(let time): alarm = time
            case .complain(_, _, let reason): fail("a start fails for good: \(reason)")
            case .attach:
                // The first one is answered as the scene begins. What is asked of one that has gone is lost.
                if isWatched || reports.contains(.away) { break }
                isWatched = true
                reports.append(.found(isRunning))
            case .detach, .workHasEnded: break
            }
        }
    }

    /// Nothing is under way, so every post was heard, or has started the program.
    private mutating func checkAtRest() {
        guard failure == nil, !choices.contains(where: LaunchScene.isUnderWay) else { return }
        let report = launcher.reports[0]
        if !owed.isEmpty { fail("nobody was told of \(owed.sorted())") }
        if report.due > 0 { fail("\(report.due) names are due") }
        if report.state != (isRunning ? "running" : "idle") { fail("the entry is \(report.state)") }
        if isRunning, !rules.isEmpty { fail("the agent hears what the program hears") }
        if !isRunning, rules != LaunchScene.subjects { fail("the agent does not hear what starts the program") }
        open = []
    }

    private mutating func fail(_ text: String) { if failure == nil { failure = text } }

    private mutating func note(_ text: @autoclosure () -> String) { if isNoted { notes.append(text()) } }
}
