// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// What is started for names, without a bus or a service manager.
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

    @Test func `a program that observes the name hears it once, and whatever was posted since`() {
        var world = LauncherWorld { $0.subjects.names = [LauncherWorld.name, LauncherWorld.other] }
        let connection = ConnectionID(7)
        world.post()
        world.take(.accepted(world.id, number: 1))
        world.take(.activity(world.id, true))
        world.end()
        world.post(LauncherWorld.other)
        world.post(LauncherWorld.other)
        let subjects = Subjects(names: [LauncherWorld.name, LauncherWorld.other])
        world.take(.observes(connection, [world.id], subjects, isNew: true))
        #expect(Set(world.delivered) == [LauncherWorld.name, LauncherWorld.other] && world.delivered.count == 2)
        world.take(.marked(connection))
        #expect(world.delivered.count == 2)
        // It hears the names itself, so the agent does not.
        #expect(world.heard.isEmpty)
        world.take(.left(connection))
        #expect(world.heard == subjects)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1)
    }

    /// Its sender may be identified only after that, too.
    @Test func `what is posted before a program observes one more name is delivered to it`() {
        let third: NotifyName = "com.example.c"
        var world = LauncherWorld { $0.subjects.names = [LauncherWorld.name, LauncherWorld.other, third] }
        let connection = ConnectionID(7)
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.take(.observes(connection, [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        world.take(.marked(LaunchMark(connection, number: 1)))
        let two = Subjects(names: [LauncherWorld.name, LauncherWorld.other])
        world.take(.observes(connection, [world.id], two, isNew: true))
        world.take(.observes(connection, [world.id], Subjects(names: two.names.union([third])), isNew: true))
        #expect(world.marks == [connection, connection, connection])
        // It hears by itself what it had observed before, and nothing else until the last mark has come.
        #expect(world.heard.names == [LauncherWorld.other, third])
        world.post(LauncherWorld.other)
        world.take(.marked(LaunchMark(connection, number: 2)))
        world.post(third)
        #expect(world.delivered == [LauncherWorld.name])
        world.take(.marked(LaunchMark(connection, number: 3)))
        #expect(world.delivered == [LauncherWorld.name, LauncherWorld.other, third] && world.heard.isEmpty)
    }

    /// The same while it is not known yet whether it belongs to the program.
    @Test func `what is posted before a program observes one more name is delivered once it is known`() {
        var world = LauncherWorld { $0.subjects.names = [LauncherWorld.name, LauncherWorld.other] }
        let connection = ConnectionID(7)
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.take(.mayObserve(connection, [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        world.take(.marked(LaunchMark(connection, number: 1)))
        let both = Subjects(names: [LauncherWorld.name, LauncherWorld.other])
        world.take(.mayObserve(connection, [world.id], both, isNew: true))
        world.post(LauncherWorld.other)
        world.take(.programIsKnown(world.id, [(connection, both)]))
        world.take(.marked(LaunchMark(connection, number: 2)))
        #expect(world.delivered == [LauncherWorld.name, LauncherWorld.other] && world.heard.isEmpty)
    }

    @Test func `what is posted before the program observes is delivered to it`() {
        var world = LauncherWorld { $0.subjects.prefixes = [NamePrefix("com.example.")] }
        let connection = ConnectionID(7)
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.take(
            .observes(connection, [world.id], Subjects(names: [LauncherWorld.name, LauncherWorld.other]), isNew: true)
        )
        #expect(world.delivered == [LauncherWorld.name] && world.marks == [connection])
        world.post(LauncherWorld.other)
        world.post(LauncherWorld.other)
        #expect(world.delivered == [LauncherWorld.name])
        world.take(.marked(connection))
        #expect(world.delivered == [LauncherWorld.name, LauncherWorld.other])
        // The agent still hears the prefix, but the program hears these names itself.
        world.post(LauncherWorld.other)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1)
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

    @Test func `nothing is due any more when the service manager is gone`() {
        var world = LauncherWorld { $0.onBusy = .restart }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post()
        world.take(.manager(obstacle: "gone"))
        #expect(world.launcher.reports[0].due == 0 && world.heard.isEmpty && world.attachments == 0)
        world.take(.manager(obstacle: nil))
        world.take(.activity(world.id, false))
        #expect(world.launcher.reports[0].due == 0)
    }

    @Test func `what was due when the service manager left starts nothing when it is back`() {
        var world = LauncherWorld { $0.onBusy = .queue }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post()
        #expect(world.launcher.reports[0].due == 1)
        world.take(.manager(obstacle: "gone"))
        // Its sender was identified only now.
        world.take(.heard(LauncherWorld.name, [world.id]))
        world.take(.manager(obstacle: nil))
        world.take(.activity(world.id, false))
        #expect(world.launcher.reports[0].due == 0 && world.starts.count == 1)
    }

    @Test func `an entry that has come to restart its program does so for what is due`() {
        var world = LauncherWorld { $0.onBusy = .queue }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post()
        #expect(world.starts.count == 1 && world.launcher.reports[0].due == 1)
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        entry.subjects.names = [LauncherWorld.name]
        entry.onBusy = .restart
        world.take(.load([entry]))
        #expect(world.starts.count == 2 && world.starts[1].restarts)
    }

    @Test func `the agent does not hear a prefix while the program hears it itself`() {
        let prefix = NamePrefix("com.example.")
        var world = LauncherWorld { $0.subjects.prefixes = [prefix] }
        let connection = ConnectionID(7)
        #expect(world.heard.prefixes == [prefix])
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.take(.observes(connection, [world.id], Subjects(prefixes: [NamePrefix("com.")]), isNew: true))
        world.take(.marked(connection))
        #expect(world.heard.isEmpty)
        world.take(.activity(world.id, false))
        #expect(world.heard.prefixes == [prefix])
    }

    /// The bus keeps no order between the service manager and the program, which may have registered before the agent
    /// learns that its unit was inactive a moment ago.
    @Test func `a program that registers before its unit is reported active is not started again for what it hears`() {
        var world = LauncherWorld { $0.subjects.names = [LauncherWorld.name, LauncherWorld.other] }
        let connection = ConnectionID(7)
        world.post()
        world.take(.activity(world.id, false))
        world.take(.accepted(world.id, number: 1))
        world.take(
            .observes(connection, [world.id], Subjects(names: [LauncherWorld.name, LauncherWorld.other]), isNew: true)
        )
        world.take(.marked(connection))
        world.take(.activity(world.id, false))
        world.take(.activity(world.id, true))
        world.end()
        #expect(world.delivered == [LauncherWorld.name] && world.heard.isEmpty)
        // It hears this itself.
        world.post(LauncherWorld.other)
        world.take(.left(connection))
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1 && world.state == "idle" && world.launcher.reports[0].due == 0)
    }

    @Test func `a program that registers before its unit is found to have been inactive is known`() {
        var world = LauncherWorld()
        world.take(.manager(obstacle: "none"))
        world.take(.manager(obstacle: nil))
        let connection = ConnectionID(7)
        world.take(.observes(connection, [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        world.take(.marked(connection))
        world.take(.activity(world.id, false))
        #expect(world.heard.isEmpty)
        world.take(.activity(world.id, true))
        world.post()
        world.take(.left(connection))
        world.take(.activity(world.id, false))
        #expect(world.starts.isEmpty && world.heard.contains(LauncherWorld.name))
    }

    @Test func `what a program was to be told before it left starts it again at once`() {
        var world = LauncherWorld { $0.onBusy = .restart }
        let connection = ConnectionID(7)
        world.take(.activity(world.id, true))
        world.take(.observes(connection, [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        world.post()
        #expect(world.starts.isEmpty)
        world.take(.left(connection))
        #expect(world.starts.count == 1)
    }

    @Test func `what a unit leaves behind does not keep it from being started again`() {
        var world = LauncherWorld()
        let connection = ConnectionID(7)
        world.take(.activity(world.id, true))
        world.take(.observes(connection, [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        world.take(.marked(connection))
        // A process that is still there observes the name.
        world.take(.activity(world.id, false))
        world.post()
        #expect(world.starts.count == 1)
    }

    @Test func `an observer that is recognized as the program later gets the same, and no other does`() {
        var world = LauncherWorld {
            $0.action = .activation("org.example.A")
            $0.subjects.names = [LauncherWorld.name, LauncherWorld.other]
        }
        let (own, other) = (ConnectionID(7), ConnectionID(8))
        let subjects = Subjects(names: [LauncherWorld.name, LauncherWorld.other])
        world.post()
        for connection in [own, other] {
            world.take(.mayObserve(connection, [world.id], subjects, isNew: true))
        }
        #expect(world.delivered.isEmpty && world.marks == [own, other])
        // It has not heard this one, because the bus had not admitted it.
        world.post(LauncherWorld.other)
        for connection in [own, other] { world.take(.marked(connection)) }
        // After that it hears each name itself.
        world.post()
        world.post(LauncherWorld.other)
        world.take(.activity(world.id, true))
        world.end()
        #expect(world.delivered.isEmpty)
        world.take(.programIsKnown(world.id, [(own, subjects)]))
        #expect(world.delivered == [LauncherWorld.name, LauncherWorld.other])
        #expect(world.heard.isEmpty && world.launcher.reports[0].due == 0)
        world.take(.left(own))
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1 && world.state == "idle")
        // One that was there all the time has heard everything.
        world.take(.activity(world.id, true))
        world.take(.programIsKnown(world.id, [(other, subjects)]))
        #expect(world.delivered.count == 2)
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

    @Test func `a program that dies before it registers is started again only for what arrived meanwhile`() {
        var world = LauncherWorld { $0.subjects.names = [LauncherWorld.name, LauncherWorld.other] }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1)
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post(LauncherWorld.other)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 3)
    }

    @Test func `a failed start uses up its posts and is reported; a canceled one is tried again`() {
        var world = LauncherWorld()
        world.post()
        world.end(.failed("there is no such unit"))
        #expect(world.starts.count == 1 && world.complaints == ["there is no such unit"] && world.state == "idle")
        world.post()
        world.end(.canceled)
        #expect(world.starts.count == 3)
    }

    @Test func `a program that fails after its start counts as failed, and says how`() {
        var world = LauncherWorld()
        func check(_ failures: UInt64, _ result: String) {
            let report = world.launcher.reports[0]
            #expect(report.failures == failures && report.lastResult == result, "\(report)")
        }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        check(0, "done")
        world.take(.activity(world.id, false, failure: "exited with status 3"))
        check(1, "exited with status 3")
        // The same before the service manager has reported that it was started.
        world.post()
        world.take(.activity(world.id, true))
        world.take(.activity(world.id, false, failure: "was ended by signal 9"))
        world.end()
        check(2, "was ended by signal 9")
        // Once for each start, even if the unit and the start both report it.
        world.post()
        world.take(.activity(world.id, true))
        world.take(.activity(world.id, false, failure: "exited with status 1"))
        world.end(.failed("the start ended with 'failed'"))
        check(3, "the start ended with 'failed'")
        world.post()
        world.take(.activity(world.id, true))
        world.take(.activity(world.id, false, failure: "exited with status 2"))
        world.end(.programFailed("exited with status 2"))
        check(4, "exited with status 2")
        // Reports on an earlier run of the unit, and on runs that others have started, don't count.
        world.take(.activity(world.id, false, failure: "exited with status 1"))
        world.take(.activity(world.id, true))
        world.take(.activity(world.id, false, failure: "exited with status 1"))
        check(4, "exited with status 2")
        // And a failure is not one of the next start, too.
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        check(4, "done")
        #expect(world.complaints.count == 1, "only what was not started")
    }

    @Test func `a program that is ended to be started again has not failed`() {
        var world = LauncherWorld { $0.onBusy = .restart }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post()
        world.take(.activity(world.id, false, failure: "exited with status 143"))
        world.take(.activity(world.id, true))
        world.end()
        #expect(world.launcher.reports[0].failures == 0 && world.launcher.reports[0].lastResult == "done")
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

    @Test func `a start that the service manager has spoiled is tried once more before it counts as failed`() {
        var world = LauncherWorld()
        world.post()
        world.post(LauncherWorld.other)
        world.end(.neverRan("no control group"))
        #expect(world.starts.map(\.number) == [1, 2] && world.complaints.isEmpty && world.state == "starting")
        #expect(world.launcher.reports[0].starts == 1)
        #expect(world.launcher.reports[0].lastResult == "no control group")
        world.end(.neverRan("no control group"))
        #expect(world.starts.count == 2 && world.complaints == ["no control group"] && world.state == "idle")
        // The next start may be tried twice again.
        world.post()
        world.end(.neverRan("no control group"))
        world.runThrough()
        #expect(world.launcher.reports[0].starts == 2 && world.launcher.reports[0].failures == 1)
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

    @Test func `a program that others started is told what it was about to be started for`() {
        var world = LauncherWorld { $0.settle = 100 }
        world.post()
        #expect(world.state == "settling")
        // It was started before the post, and observes after it.
        world.take(.activity(world.id, true))
        world.take(.observes(ConnectionID(7), [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        #expect(world.delivered == [LauncherWorld.name])
        world.wait(1_000)
        #expect(world.starts.isEmpty && world.launcher.reports[0].due == 0)

        // The same if it turns out to be the program only later.
        world = LauncherWorld {
            $0.settle = 100
            $0.action = .activation("org.example.A")
        }
        world.post()
        let subjects = Subjects(names: [LauncherWorld.name])
        world.take(.mayObserve(ConnectionID(7), [world.id], subjects, isNew: true))
        world.take(.activity(world.id, true))
        world.take(.programIsKnown(world.id, [(ConnectionID(7), subjects)]))
        #expect(world.delivered == [LauncherWorld.name])

        // And if it observes in between.
        world = LauncherWorld {
            $0.settle = 100
            $0.action = .activation("org.example.A")
        }
        world.post()
        world.take(.activity(world.id, true))
        world.wait(100)
        #expect(world.state == "running" && world.starts.isEmpty)
        world.take(.mayObserve(ConnectionID(7), [world.id], subjects, isNew: true))
        world.take(.marked(ConnectionID(7)))
        world.take(.programIsKnown(world.id, [(ConnectionID(7), subjects)]))
        #expect(world.delivered == [LauncherWorld.name] && world.launcher.reports[0].due == 0)
    }

    /// The program observes one name, and another one restarts it.
    private func makeRestart(old: ConnectionID) -> LauncherWorld {
        var world = LauncherWorld {
            $0.onBusy = .restart
            $0.subjects.names = [LauncherWorld.name, LauncherWorld.other]
        }
        world.take(.activity(world.id, true))
        world.take(.observes(old, [world.id], Subjects(names: [LauncherWorld.other]), isNew: true))
        world.take(.marked(old))
        #expect(world.heard == Subjects(names: [LauncherWorld.name]))
        world.post()
        #expect(world.starts.map(\.restarts) == [true])
        return world
    }

    @Test func `what is posted while a program is being restarted goes to the one that follows`() {
        let (old, new, subjects) = (ConnectionID(7), ConnectionID(8), Subjects(names: [LauncherWorld.other]))
        var world = makeRestart(old: old)
        world.take(.accepted(world.id, number: 1))
        // The old one hears this too, but may not get to it; nor does it matter what else it begins to observe.
        world.post(LauncherWorld.other)
        world.take(
            .observes(old, [world.id], Subjects(names: [LauncherWorld.name, LauncherWorld.other]), isNew: false)
        )
        #expect(world.delivered.isEmpty)
        world.take(.activity(world.id, false))
        world.take(.left(old))
        world.take(.activity(world.id, true))
        world.take(.observes(new, [world.id], subjects, isNew: true))
        world.take(.marked(new))
        #expect(world.delivered == [LauncherWorld.other])
        world.end()
        #expect(world.starts.count == 1 && world.launcher.reports[0].due == 0)
        #expect(world.heard == Subjects(names: [LauncherWorld.name]))
    }

    @Test func `a program is told what it has missed even if its predecessor was not seen to end`() {
        let (old, new, subjects) = (ConnectionID(7), ConnectionID(8), Subjects(names: [LauncherWorld.other]))
        var world = makeRestart(old: old)
        world.take(.accepted(world.id, number: 1))
        world.post(LauncherWorld.other)
        world.take(.observes(new, [world.id], subjects, isNew: true))
        world.take(.left(old))
        #expect(world.delivered.isEmpty)
        world.end()
        #expect(world.delivered == [LauncherWorld.other])
        world.take(.marked(new))
        // It is not restarted for what it has been told, and hears the name itself.
        #expect(world.starts.count == 1 && world.heard == Subjects(names: [LauncherWorld.name]))
    }

    @Test func `what the program that is ended was still to be told, the one that follows is told instead`() {
        let (old, new, both) = (
            ConnectionID(7), ConnectionID(8), Subjects(names: [LauncherWorld.name, LauncherWorld.other])
        )
        var world = LauncherWorld {
            $0.onBusy = .restart
            $0.subjects = both
        }
        world.take(.activity(world.id, true))
        // It may not hear this by itself.
        world.take(.observes(old, [world.id], Subjects(names: [LauncherWorld.other]), isNew: true))
        world.post(LauncherWorld.other)
        world.post()
        #expect(world.starts.map(\.restarts) == [true] && world.launcher.reports[0].due == 2)
        world.take(.accepted(world.id, number: 1))
        world.take(.activity(world.id, false))
        world.take(.left(old))
        world.take(.activity(world.id, true))
        world.take(.observes(new, [world.id], both, isNew: true))
        world.take(.marked(new))
        world.end()
        #expect(Set(world.delivered) == both.names && world.delivered.count == 2)
        #expect(world.starts.count == 1 && world.launcher.reports[0].due == 0)
    }

    @Test func `what a program was not started again for, the one that follows is not told`() {
        let both = Subjects(names: [LauncherWorld.name, LauncherWorld.other])
        var world = LauncherWorld {
            $0.onBusy = .drop
            $0.subjects = both
        }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post(LauncherWorld.other)
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        (entry.subjects, entry.onBusy) = (both, .restart)
        world.take(.load([entry]))
        world.post()
        #expect(world.starts.map(\.restarts) == [false, true])
        world.take(.accepted(world.id, number: 2))
        world.take(.activity(world.id, false))
        world.take(.activity(world.id, true))
        world.take(.observes(ConnectionID(7), [world.id], both, isNew: true))
        #expect(world.delivered == [LauncherWorld.name])
    }

    @Test func `what was posted before an entry lost the name does not count when it has it again`() {
        let both = Subjects(names: [LauncherWorld.name, LauncherWorld.other])
        var world = LauncherWorld { $0.subjects = both }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.post(LauncherWorld.other)
        for subjects in [Subjects(names: [LauncherWorld.name]), both] {
            var entry = LaunchEntry(title: "a", action: .unit("a.service"))
            entry.subjects = subjects
            world.take(.load([entry]))
        }
        world.take(.observes(ConnectionID(7), [world.id], both, isNew: true))
        #expect(world.delivered == [LauncherWorld.name])
    }

    @Test func `of what is posted while a program runs, it is told as many names as an entry keeps`() throws {
        var world = LauncherWorld {
            $0.onBusy = .drop
            $0.subjects = Subjects(prefixes: [NamePrefix("com.example.")])
        }
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        for number in 0...Launch.maximumDue { world.post(try NotifyName("com.example.n\(number)")) }
        let prefix = Subjects(prefixes: [NamePrefix("com.example.")])
        world.take(.observes(ConnectionID(7), [world.id], prefix, isNew: true))
        #expect(world.delivered.count == Launch.maximumDue)
    }

    @Test func `programs that ran before the service manager left hear nothing for those that it starts`() {
        var world = LauncherWorld()
        world.post()
        world.take(.activity(world.id, true))
        world.end()
        world.take(.observes(ConnectionID(7), [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        world.take(.marked(ConnectionID(7)))
        #expect(world.heard.isEmpty)
        world.take(.manager(obstacle: "gone"))
        world.take(.manager(obstacle: nil))
        world.take(.activity(world.id, false))
        #expect(world.heard == Subjects(names: [LauncherWorld.name]))
    }

    @Test func `a restart that is accepted late counts as one`() {
        var world = makeRestart(old: ConnectionID(7))
        // The service manager was still busy with an earlier restart.
        world.take(.activity(world.id, false))
        world.take(.activity(world.id, true))
        world.take(.accepted(world.id, number: 1))
        world.take(.activity(world.id, false))
        world.take(.activity(world.id, true))
        world.end()
        #expect(world.starts.count == 1 && world.launcher.reports[0].due == 0)
        #expect(world.launcher.reports[0].lastResult == "done")
    }

    @Test func `a program that ends before it is told is started again for that`() {
        var world = LauncherWorld { $0.subjects.prefixes = [NamePrefix("com.example.")] }
        world.take(.activity(world.id, true))
        world.take(.observes(ConnectionID(7), [world.id], Subjects(names: [LauncherWorld.other]), isNew: true))
        world.post(LauncherWorld.other)
        #expect(world.starts.isEmpty && world.launcher.reports[0].due == 0)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1)
    }

    @Test func `a program that others start before its names are heard again is not restarted`() {
        var launcher = Launcher()
        func take(_ event: Launcher.Event) -> [Launcher.Effect] {
            launcher.handle(event, at: Timestamp(nanoseconds: 0))
        }
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        entry.limit = .init(starts: 1, window: 1_000)
        entry.subjects.names = [LauncherWorld.name]
        let id = LaunchID(1)
        _ = take(.manager(obstacle: nil))
        _ = take(.load([entry]))
        _ = take(.activity(id, false))
        _ = take(.subscribed(id, failure: nil))
        _ = take(.heard(LauncherWorld.name, [id]))
        _ = take(.ended(id, number: 1, .done))
        // Beyond the limit the name is given up, and requested again before the start.
        let released = take(.heard(LauncherWorld.name, [id]))
        #expect(released.contains(.unsubscribe(id, Subjects(names: [LauncherWorld.name]))))
        let requested = launcher.handle(.alarm, at: Timestamp(nanoseconds: 1_000))
        #expect(requested.contains(.subscribe(id, Subjects(names: [LauncherWorld.name]))))
        _ = take(.activity(id, true))
        #expect(take(.subscribed(id, failure: nil)).isEmpty)
        #expect(launcher.reports[0].state == "running" && launcher.reports[0].due == 1)
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

    @Test func `with drop, a program that others start is told of what was posted, but not started again`() {
        // A start that the service manager had not confirmed in time succeeds after all.
        var world = LauncherWorld {
            $0.onBusy = .drop
            $0.settle = 100
        }
        world.post()
        world.wait(100)
        world.wait(Launch.timeLimit)
        #expect(world.complaints.count == 1 && world.state == "idle")
        world.post()
        world.take(.activity(world.id, true))
        world.wait(100)
        #expect(world.state == "running" && world.launcher.reports[0].due == 0)
        world.take(.observes(ConnectionID(7), [world.id], Subjects(names: [LauncherWorld.name]), isNew: true))
        #expect(world.delivered == [LauncherWorld.name])
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1 && world.state == "idle")

        // The same while the agent finds out what is running.
        world.take(.manager(obstacle: "none"))
        world.take(.manager(obstacle: nil))
        world.post()
        world.take(.activity(world.id, true))
        #expect(world.state == "running" && world.launcher.reports[0].due == 0)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1 && world.state == "idle")
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
        var world = LauncherWorld()
        world.take(.manager(obstacle: "there is none"))
        #expect(world.state == "off" && world.launcher.reports[0].reason == "there is none" && world.heard.isEmpty)
        world.take(.manager(obstacle: nil))
        world.take(.activity(world.id, false))
        world.post()
        #expect(world.starts.count == 1)
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
