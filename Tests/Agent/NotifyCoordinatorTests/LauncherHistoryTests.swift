// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// Programs, posts and reports in random orders: no post is forgotten, and none starts a program twice.
@Suite struct LauncherHistoryTests {
    /// Posts, exits and observers at random moments. A start, or its delivery, follows the last post of a name.
    @Test func `whatever happens, no post is forgotten, and at rest nothing is due`() {
        for seed in UInt64(1)...(isLongRun ? 20_000 : 500) {
            var random = SeededGenerator(seed: seed)
            var world = LauncherWorld { $0.limit = .init(starts: 4, window: 50) }
            /// Whether neither a start nor a delivery has followed a post yet.
            var isOwed = false
            var isActive = false
            var connection: ConnectionID?
            var last: UInt64 = 10
            for _ in 0..<60 {
                let (starts, delivered) = (world.starts.count, world.delivered.count)
                var isPost = false
                switch UInt64.random(in: 0..<8, using: &random) {
                case 0, 1, 2:
                    isPost = true
                    if connection == nil { isOwed = true }
                    world.post()
                case 3 where world.state == "starting":
                    world.take(.accepted(world.id, number: world.starts.last?.number ?? 0))
                    isActive = true
                    world.take(.activity(world.id, true))
                case 4 where world.state == "starting" && isActive: world.end()
                case 5 where isActive && world.state == "running":
                    isActive = false
                    connection = nil
                    world.take(.activity(world.id, false))
                case 6 where isActive && connection == nil:
                    last += 1
                    let new = ConnectionID(last)
                    world.take(.observes(new, [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
                    world.take(.marked(new))
                    connection = new
                case 7: world.wait(20)
                default: break
                }
                let isServed = world.starts.count > starts || world.delivered.count > delivered
                if isServed { isOwed = false }
                if isOwed, !isPost, world.state == "idle" {
                    Issue.record("seed \(seed): a post is owed, and nothing is under way")
                    return
                }
            }
            if isActive {
                if world.state == "starting" { world.end() }
                world.take(.activity(world.id, false))
            }
            for _ in 0..<20 where world.state != "idle" {
                if world.state == "starting" { world.runThrough() }
                world.wait(100)
            }
            #expect(world.state == "idle" && world.launcher.reports[0].due == 0, "seed \(seed): \(world.state)")
        }
    }

    /// A unit and its program on a bus that keeps the order of what each of them sends, but none between the two.
    private struct History {
        var world = LauncherWorld {
            $0.subjects.names = [LauncherWorld.name, LauncherWorld.other]
            $0.limit = .init(starts: 1_000, window: 1)
        }
        /// What the service manager has sent and the agent has not received.
        var reports: [Launcher.Event] = []
        /// The start that the service manager has yet to carry out.
        var job: UInt64?
        var isRunning = false
        var connection: ConnectionID?
        /// The connection whose end the agent has yet to notice.
        var ended: ConnectionID?
        var isMarked = true
        var isEndReported = true
        private var lastConnection: UInt64 = 10
        /// Posted, and neither heard by a program nor the reason for a start.
        var owed: Set<NotifyName> = []
        /// Posted while it is not known who hears it: these may be heard twice.
        var open: Set<NotifyName> = []
        /// What the program that runs was started for, until it has registered.
        var cause: Set<NotifyName> = []
        var fault: String?

        mutating func take(_ event: Launcher.Event) {
            let count = world.starts.count
            world.take(event)
            startsWereMade(since: count)
        }

        private mutating func startsWereMade(since count: Int) {
            guard world.starts.count > count else { return }
            if owed.isEmpty, open.isEmpty { fault = "it is started for what it has heard" }
            cause = owed
            (owed, open) = ([], [])
            job = world.starts.last?.number
            reports.append(.accepted(world.id, number: job ?? 0))
        }

        mutating func post(_ name: NotifyName) {
            // While the agent has not learnt that the program is gone, a post may be lost.
            let isCertain = ended == nil && isEndReported
            if connection == nil, isCertain {
                owed.insert(name)
            } else if connection == nil || !isMarked {
                open.insert(name)
            }
            let count = world.starts.count
            world.post(name)
            startsWereMade(since: count)
        }

        mutating func begin(saysInactiveFirst: Bool) {
            guard let number = job, !isRunning else { return }
            job = nil
            isRunning = true
            if saysInactiveFirst { reports.append(.activity(world.id, false)) }
            reports += [.activity(world.id, true), .ended(world.id, number: number, .done)]
        }

        mutating func register() {
            guard isRunning, connection == nil, ended == nil else { return }
            lastConnection += 1
            let new = ConnectionID(lastConnection)
            (connection, isMarked) = (new, false)
            let before = world.delivered.count
            take(.observes(new, [world.id], Subjects(names: [LauncherWorld.name, LauncherWorld.other]), isNew: true))
            let told = Set(world.delivered[before...])
            if !told.isSuperset(of: owed.union(cause)) { fault = "it is not told what it has missed" }
            (owed, cause) = ([], [])
        }

        mutating func mark() {
            guard let connection, !isMarked else { return }
            isMarked = true
            take(.marked(connection))
            open = []
        }

        mutating func exit() {
            guard isRunning else { return }
            (isRunning, isEndReported) = (false, false)
            (ended, connection, cause) = (connection, nil, [])
            reports.append(.activity(world.id, false))
        }

        mutating func leave() {
            guard let old = ended else { return }
            ended = nil
            take(.left(old))
        }

        mutating func receiveReport() {
            guard !reports.isEmpty else { return }
            let report = reports.removeFirst()
            if case .activity(_, false, _) = report, !isRunning { isEndReported = true }
            take(report)
        }
    }

    @Test func `in whatever order the bus passes things on, it is started for each post that no program hears, once`() {
        for seed in UInt64(1)...(isLongRun ? 50_000 : 1_000) {
            var random = SeededGenerator(seed: seed)
            var history = History()
            var steps: [String] = []
            for _ in 0..<60 {
                let step = UInt64.random(in: 0..<10, using: &random)
                steps.append("\(step)")
                switch step {
                case 0: history.post(LauncherWorld.name)
                case 1: history.post(LauncherWorld.other)
                case 2, 3: history.begin(saysInactiveFirst: step == 2)
                case 4: history.register()
                case 5: history.mark()
                case 6 where Bool.random(using: &random): history.exit()
                case 7: history.leave()
                default: history.receiveReport()
                }
                if history.fault != nil { break }
            }
            // Everything that is under way comes to its end.
            for _ in 0..<50 where history.fault == nil {
                history.mark()
                history.begin(saysInactiveFirst: true)
                history.register()
                history.mark()
                while !history.reports.isEmpty { history.receiveReport() }
                if history.world.state == "idle" { break }
                history.exit()
                history.leave()
            }
            let report = history.world.launcher.reports[0]
            let isAtRest = report.state == "idle" && report.due == 0 && history.owed.isEmpty
            if let fault = history.fault ?? (isAtRest ? nil : "\(report.state), \(report.due) due") {
                Issue.record("seed \(seed): \(fault), after \(steps.joined(separator: " "))")
                return
            }
        }
    }
}
