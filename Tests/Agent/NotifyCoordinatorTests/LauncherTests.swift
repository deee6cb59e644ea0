// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// What is started for names, and when, without a bus or a service manager.
@Suite struct LauncherTests {
    @Test func `a post starts the unit once, and what arrives meanwhile starts it once more`() {
        var world = LauncherWorld()
        world.post()
        #expect(world.starts.count == 1 && world.state == "starting")
        world.take(.accepted(world.id, number: 1))
        world.take(.activity(world.id, true))
        for _ in 0..<100_000 { world.post() }
        #expect(world.starts.count == 1)
        world.take(.activity(world.id, false))
        world.end()
        #expect(world.starts.count == 2)
        world.runThrough()
        #expect(world.starts.count == 2 && world.state == "idle")
        world.post()
        #expect(world.starts.count == 3)
    }

    @Test func `until it is known whether the bus has a service manager, what needs one is waking`() {
        var launcher = Launcher()
        _ = launcher.handle(
            .load([LaunchEntry(title: "a", action: .unit("a.service"))]),
            at: Timestamp(nanoseconds: 0, wallClock: 0)
        )
        #expect(launcher.reports.map(\.state) == ["waking"])
        #expect(launcher.isWaking(LaunchID(1)))
        _ = launcher.handle(.manager(obstacle: "none"), at: Timestamp(nanoseconds: 0, wallClock: 0))
        #expect(launcher.reports[0].state.hasPrefix("off"))
    }

    @Test func `with drop, what arrives while the program runs is dropped`() {
        var world = LauncherWorld { $0.onBusy = .drop }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post()
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1 && world.state == "idle")
        world.post()
        #expect(world.starts.count == 2)
    }

    @Test func `with restart, a running program is ended and started again`() {
        var world = LauncherWorld { $0.onBusy = .restart }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post()
        #expect(world.starts.map(\.restarts) == [false, true])
        world.take(.activity(world.id, false))
        world.take(.activity(world.id, true))
        world.end()
        #expect(world.starts.count == 2 && world.state == "running")
    }

    @Test func `a start waits until nothing more arrives, but no longer than ten times that`() {
        var world = LauncherWorld { $0.settle = 100 }
        world.post()
        for _ in 0..<9 {
            world.wait(99)
            world.post()
            #expect(world.starts.isEmpty && world.state == "settling")
        }
        world.wait(100)
        #expect(world.starts.count == 1)
        world.runThrough()
        world.post()
        for _ in 0..<11 {
            world.wait(99)
            world.post()
        }
        #expect(world.starts.count == 2)
    }

    @Test func `beyond the limit, one start for everything that is due follows as soon as it is allowed`() {
        var world = LauncherWorld { $0.limit = .init(starts: 3, window: 1_000) }
        for _ in 0..<10 {
            world.post()
            if world.starts.count < 4, world.state == "starting" { world.runThrough() }
        }
        #expect(world.starts.count == 3 && world.state == "limited")
        // The agent hears nothing that would change nothing.
        #expect(world.heard.isEmpty)
        world.wait(999)
        #expect(world.starts.count == 3)
        world.wait(1)
        #expect(world.starts.count == 4)
        world.runThrough()
        #expect(world.state == "idle")
    }

    @Test func `a limit and a time that are changed count at once`() {
        let year: Int64 = 365 * 86_400_000_000_000
        var world = LauncherWorld { $0.limit = .init(starts: 1, window: year) }
        world.post()
        world.runThrough()
        world.post()
        #expect(world.starts.count == 1 && world.state == "limited")
        var entry = world.launcher.reports[0].entry
        entry.limit = .init(starts: 2, window: year)
        world.take(.load([entry]))
        #expect(world.starts.count == 2)
        world.runThrough()
        entry.limit = .init(starts: 9, window: year)
        entry.settle = year / 100
        world.take(.load([entry]))
        world.post()
        #expect(world.state == "settling")
        entry.settle = 10
        world.take(.load([entry]))
        world.wait(10)
        #expect(world.starts.count == 3)
    }

    @Test func `a start that the service manager has spoiled counts for no limit`() {
        var world = LauncherWorld { $0.limit = .init(starts: 1, window: 1_000) }
        world.post()
        world.end(.neverRan("no control group"))
        #expect(world.starts.count == 2 && world.state == "starting")
        world.runThrough()
        world.post()
        #expect(world.starts.count == 2 && world.state == "limited")
    }

    @Test func `a program that ends while its next start has yet to come is at work no more`() {
        var world = LauncherWorld {
            $0.onBusy = .restart
            $0.limit = .init(starts: 1, window: 1_000)
        }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post()
        #expect(world.state == "limited" && world.launcher.isAtWork(on: [LauncherWorld.name]))
        world.take(.activity(world.id, false))
        #expect(!world.launcher.isAtWork(on: [LauncherWorld.name]) && world.ends == 1)
    }

    @Test func `an entry whose action has changed begins anew`() {
        var world = LauncherWorld()
        world.post()
        world.end(.failed("no"))
        #expect(world.launcher.reports[0].lastResult == "no" && world.attachments == 1)
        var entry = LaunchEntry(title: "a", action: .unit("b.service"))
        entry.subjects.names = [LauncherWorld.other]
        world.take(.load([entry]))
        #expect(world.launcher.reports.count == 1 && world.launcher.reports[0].lastResult != "no")
        #expect(world.heard == entry.subjects && world.attachments == 1)
        world.take(.load([]))
        #expect(world.launcher.isEmpty && world.heard.isEmpty && world.attachments == 0)
    }

    @Test func `what is due while the service manager is away, or was before, is started when it is back`() {
        for wasDue in [true, false] {
            var world = LauncherWorld { $0.settle = wasDue ? 1_000 : 0 }
            if wasDue { world.post() }
            for reason in ["gone", "silent", "gone"] {
                world.take(.manager(obstacle: reason))
                #expect(world.state == "waking" && world.launcher.reports[0].reason == reason)
                #expect(world.attachments == 0 && world.heard.names == [LauncherWorld.name])
                world.post()
                world.wait(100_000)
                #expect(world.starts.isEmpty && world.launcher.reports[0].due == 1)
            }
            world.take(.manager(obstacle: nil))
            #expect(world.attachments == 1 && world.starts.isEmpty && world.launcher.reports[0].reason.isEmpty)
            world.take(.activity(world.id, false))
            world.wait(100_000)
            #expect(world.starts.count == 1)
            world.runThrough()
            #expect(world.starts.count == 1 && world.state == "idle" && world.launcher.reports[0].due == 0)
        }
    }

    @Test func `a start is requested again if the service manager had not accepted it when it went away`() {
        for isAccepted in [true, false] {
            var world = LauncherWorld { $0.limit = .init(starts: 1, window: 1_000) }
            world.post()
            if isAccepted { world.take(.accepted(world.id, number: 1)) }
            world.take(.manager(obstacle: "gone"))
            #expect(world.launcher.reports[0].due == (isAccepted ? 0 : 1))
            // What the old one has said comes too late.
            world.take(.ended(world.id, number: 1, .failed("gone")))
            #expect(world.state == "waking" && world.complaints.isEmpty)
            world.take(.manager(obstacle: nil))
            world.take(.activity(world.id, isAccepted))
            #expect(world.starts.map(\.number) == (isAccepted ? [1] : [1, 2]))
            #expect(world.launcher.reports[0].starts == 1)
        }
    }

    @Test func `what a running program hears while the service manager is away does not start it again`() {
        for isRunning in [true, false] {
            var world = LauncherWorld()
            world.post()
            world.take(.accepted(world.id, number: 1))
            world.take(.activity(world.id, true))
            world.end()
            world.take(.observes(ConnectionID(7), [world.id], Subjects(names: [LauncherWorld.name]), isNew: false))
            #expect(world.heard.isEmpty)
            world.take(.manager(obstacle: "gone"))
            // It may end meanwhile.
            world.post()
            #expect(world.launcher.reports[0].due == 1)
            world.take(.manager(obstacle: nil))
            if isRunning {
                // It has registered before.
                world.take(.observes(ConnectionID(7), [world.id], Subjects(names: [LauncherWorld.name]), isNew: false))
            }
            world.take(.activity(world.id, isRunning))
            if !isRunning { world.runThrough() }
            #expect(world.launcher.reports[0].due == 0 && world.starts.count == (isRunning ? 1 : 2))
        }
    }

    @Test func `it is busy from the post until the program has ended, and then says so`() {
        var world = LauncherWorld { $0.settle = 100 }
        func isAtWork() -> Bool { world.launcher.isAtWork(on: [LauncherWorld.name]) }
        #expect(!isAtWork())
        world.post()
        #expect(isAtWork() && !world.launcher.isAtWork(on: [LauncherWorld.other]))
        world.wait(100)
        world.take(.accepted(world.id, number: 1))
        world.take(.activity(world.id, true))
        world.end()
        // It is running, and its start as a service has finished.
        #expect(isAtWork() && world.ends == 0)
        world.take(.activity(world.id, false))
        #expect(!isAtWork() && world.ends == 1)
        world.post()
        world.wait(100)
        world.end(.failed("there is no such unit"))
        #expect(!isAtWork() && world.ends == 2)
        // One that was already running was not started for the post.
        world.take(.activity(world.id, true))
        world.post()
        #expect(!isAtWork())
    }

    @Test func `what is due waits until the conditions hold, and is one start then`() {
        var world = LauncherWorld { $0.conditions = [.init("com.example.ready", isNegated: false)] }
        world.post()
        world.post()
        #expect(world.starts.isEmpty && world.state == "idle" && world.launcher.reports[0].due == 1)
        world.take(.conditions(world.id, hold: true))
        #expect(world.starts.count == 1)
        world.runThrough()
        world.take(.conditions(world.id, hold: false))
        world.take(.conditions(world.id, hold: true))
        #expect(world.starts.count == 1, "nothing is due")
        // They hold no more while posts settle.
        world = LauncherWorld {
            $0.conditions = [.init("com.example.ready", isNegated: false)]
            $0.settle = 1_000
        }
        world.take(.conditions(world.id, hold: true))
        world.post()
        #expect(world.state == "settling")
        world.take(.conditions(world.id, hold: false))
        world.wait(2_000)
        #expect(world.starts.isEmpty && world.state == "idle")
        world.take(.conditions(world.id, hold: true))
        world.wait(2_000)
        #expect(world.starts.count == 1)
    }

    @Test func `an entry that has got conditions waits for them, and one that has lost them no more`() {
        var world = LauncherWorld()
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        entry.subjects.names = [LauncherWorld.name]
        entry.conditions = [.init("com.example.ready", isNegated: false)]
        world.take(.load([entry]))
        world.post()
        #expect(world.starts.isEmpty && world.launcher.reports[0].due == 1)
        entry.conditions = []
        world.take(.load([entry]))
        #expect(world.starts.count == 1)
    }

    @Test func `a name is not heard while posts of it are dropped, whatever has started the program`() {
        var world = LauncherWorld {
            $0.conditions = [.init("com.example.ready", isNegated: false)]
            $0.onBusy = .drop
        }
        world.post()
        #expect(world.heard == Subjects(names: [LauncherWorld.name]))
        world.take(.conditions(world.id, hold: true))
        #expect(world.starts.count == 1 && world.heard.isEmpty)
    }

    @Test func `a condition holds for a state that is known`() {
        let (plain, negated) = (
            LaunchEntry.Condition("a", isNegated: false), LaunchEntry.Condition("a", isNegated: true)
        )
        for (state, isSet) in [(0, false), (1, true), (.max, true)] as [(UInt64, Bool)] {
            #expect(plain.holds(for: state) == isSet && negated.holds(for: state) == !isSet)
        }
        #expect(!plain.holds(for: nil) && !negated.holds(for: nil))
    }

    @Test func `a service manager gets 90 seconds to answer, and a start as long as it takes`() {
        var world = LauncherWorld()
        world.post()
        world.wait(89_999_999_999)
        #expect(world.state == "starting")
        world.wait(1)
        #expect(world.state == "idle" && world.complaints.count == 1)
        world.post()
        world.take(.accepted(world.id, number: 2))
        world.wait(1_000_000_000_000)
        #expect(world.state == "starting")
    }

    @Test func `a unit that others started is left alone until it ends`() {
        var world = LauncherWorld()
        world.take(.activity(world.id, true))
        #expect(world.state == "running")
        world.post()
        #expect(world.starts.isEmpty)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1)
    }

    @Test(arguments: [false, true])
    func `a unit that others have started before the post is started once more`(isOneshot: Bool) {
        // The service manager has nothing to do, or its job is under way already. It reports what the unit does before
        // the end of the job.
        var world = LauncherWorld()
        world.now = 10
        world.post()
        world.take(.activity(world.id, true))
        world.take(.accepted(world.id, number: 1))
        if isOneshot { world.take(.activity(world.id, false)) }
        world.end(.begun(at: 9))
        if !isOneshot {
            #expect(world.state == "running" && world.launcher.reports[0].due == 1)
            world.take(.activity(world.id, false))
        }
        #expect(world.starts.map(\.restarts) == [false, false])
        // This time it is started.
        world.now = 20
        world.take(.accepted(world.id, number: 2))
        world.take(.activity(world.id, true))
        world.end(.begun(at: 20))
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 2 && world.state == "idle" && world.launcher.reports[0].due == 0)

        // With drop, the post has come while the program was running.
        world = LauncherWorld { $0.onBusy = .drop }
        world.now = 10
        world.post()
        world.take(.activity(world.id, true))
        world.take(.accepted(world.id, number: 1))
        world.end(.begun(at: 9))
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1 && world.state == "idle" && world.launcher.reports[0].due == 0)
    }

    /// In each order in which the service manager may report its start.
    @Test(arguments: 0..<4) func `entries for one unit share a run that begins after the post, and no earlier one`(
        order: Int
    ) {
        var launcher = Launcher()
        var starts: [LaunchID] = []
        func take(_ event: Launcher.Event, at time: Int64) {
            for effect in launcher.handle(event, at: Timestamp(nanoseconds: time)) {
                switch effect {
                case .start(let id, _, _, _, _): starts.append(id)
                case .subscribe(let id, _): take(.subscribed(id, failure: nil), at: time)
                default: break
                }
            }
        }
        let (one, two) = (LaunchID(1), LaunchID(2))
        take(.manager(obstacle: nil), at: 0)
        take(
            .load(
                ["1", "2"].map { title in
                    var entry = LaunchEntry(title: title, action: .unit("a.service"))
                    entry.subjects.names = [LauncherWorld.name]
                    return entry
                }
            ),
            at: 0
        )
        for id in [one, two] { take(.activity(id, false), at: 0) }
        take(.heard(LauncherWorld.name, [one, two]), at: 10)
        #expect(starts == [one, two])
        let begins = [one, two].map { Launcher.Event.activity($0, true) }
        let acceptances = [one, two].map { Launcher.Event.accepted($0, number: 1) }
        let ends = [one, two].map { Launcher.Event.ended($0, number: 1, .begun(at: 20)) }
        let events =
            switch order {
            case 0: begins + acceptances + ends
            case 1: acceptances + begins + ends
            case 2: [acceptances[0]] + begins + [ends[0], acceptances[1], ends[1]]
            default: [acceptances[0]] + begins + [acceptances[1], ends[1], ends[0]]
            }
        for event in events { take(event, at: 30) }
        #expect(launcher.reports.map(\.state) == ["running", "running"])
        for id in [one, two] { take(.activity(id, false), at: 40) }
        #expect(starts == [one, two] && launcher.reports.map(\.state) == ["idle", "idle"])

        // Only one of them learns of the next post before the unit begins.
        take(.heard(LauncherWorld.name, [one]), at: 50)
        take(.heard(LauncherWorld.name, [two]), at: 70)
        for event in begins { take(event, at: 71) }
        for id in [one, two] { take(.ended(id, number: 2, .begun(at: 60)), at: 72) }
        #expect(launcher.reports.map(\.due) == [0, 1])
        for id in [one, two] { take(.activity(id, false), at: 80) }
        #expect(starts == [one, two, one, two, two])
    }

    @Test func `a run that began while a name was not heard doesn't use up its posts`() {
        var world = LauncherWorld()
        world.now = 10
        world.post()
        world.take(.activity(world.id, true))
        world.end(.begun(at: 11))
        // It is due now, so further posts of it don't wake the agent, and it does not know when they come.
        world.post()
        #expect(world.heard.isEmpty)
        world.now = 20
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 2)
        // Another program has just started it.
        world.take(.activity(world.id, true))
        world.take(.accepted(world.id, number: 2))
        world.end(.begun(at: 19))
        #expect(world.state == "running" && world.launcher.reports[0].due == 1)
        world.take(.activity(world.id, false))
        world.end(.begun(at: 20))
        #expect(world.starts.count == 3 && world.state == "idle")
    }

    @Test func `if the bus finds the program running, one more start follows`() {
        var world = LauncherWorld { $0.action = .activation("org.example.A") }
        world.post()
        world.take(.activity(world.id, true))
        world.end(.wasRunning)
        #expect(world.state == "running" && world.launcher.reports[0].due == 1)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 2)
    }

    @Test func `an entry is not started for a name that it no longer has`() {
        var world = LauncherWorld()
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        entry.subjects.names = [LauncherWorld.other]
        world.take(.load([entry]))
        // The agent has only now found out who posted it.
        world.take(.heard(LauncherWorld.name, [world.id]))
        #expect(world.starts.isEmpty && world.launcher.reports[0].due == 0)
    }

    @Test func `a name is heard all the time while its entry changes how it asks for it`() {
        var world = LauncherWorld()
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        entry.subjects.prefixes = [NamePrefix("com.example.")]
        // The bus has the new rules before it loses the old ones.
        for subjects in [entry.subjects, Subjects(names: [LauncherWorld.name])] {
            entry.subjects = subjects
            let effects = world.launcher.handle(.load([entry]), at: Timestamp(nanoseconds: 0))
            let place = effects.firstIndex { if case .subscribe = $0 { true } else { false } }
            let other = effects.firstIndex { if case .unsubscribe = $0 { true } else { false } }
            #expect(place == 0 && other == 1, "\(effects)")
            _ = world.launcher.handle(.subscribed(world.id, failure: nil), at: Timestamp(nanoseconds: 0))
        }
    }

    @Test func `without a service manager units are off with a reason, and work again once there is one`() {
        var world = LauncherWorld(withManager: false)
        #expect(world.state == "off" && world.launcher.reports[0].reason == "there is none" && world.heard.isEmpty)
        world.take(.manager(obstacle: nil))
        world.take(.activity(world.id, false))
        world.post()
        #expect(world.starts.count == 1)
    }

    /// It is looked for anew, and knows nothing of them before it has come.
    @Test func `entries that come after the last one has gone are attached once the service manager is there`() {
        var world = LauncherWorld()
        var entry = LaunchEntry(title: "b", action: .unit("b.service"))
        entry.subjects.names = [LauncherWorld.name]
        for entries in [[], [LaunchEntry(title: "c", action: .activation("com.example.Service"))]] {
            world.take(.load(entries))
            let attachments = world.attachments
            world.take(.load(entries + [entry]))
            #expect(world.attachments == attachments && world.state == "waking")
            world.take(.manager(obstacle: nil))
            #expect(world.attachments == attachments + 1)
        }
    }

    @Test func `an alarm that comes too early is set once more`() {
        var world = LauncherWorld { $0.settle = 5 }
        world.post()
        #expect(world.alarm == 5)
        (world.now, world.alarm) = (4, nil)
        world.take(.alarm)
        #expect(world.alarm == 5 && world.starts.isEmpty)
    }
}
