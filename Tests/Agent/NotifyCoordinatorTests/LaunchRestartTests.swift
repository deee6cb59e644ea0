// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// Programs that are restarted, and starts that fail.
@Suite struct LaunchRestartTests {
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

    @Test func `a failed start uses up its posts and is reported; a canceled one is tried again`() {
        var world = LauncherWorld()
        world.post()
        world.end(.failed("there is no such unit"))
        #expect(world.starts.count == 1 && world.complaints == ["there is no such unit"] && world.state == "idle")
        world.post()
        for count in 3...5 {
            world.end(.canceled)
            #expect(world.starts.count == count && world.launcher.reports[0].lastResult == "canceled")
        }
        world.end(.failed("there is no such unit"))
        world.post()
        for _ in 0..<4 { world.end(.canceled) }
        #expect(world.complaints.last == "its start was canceled 4 times in a row")
        #expect(world.launcher.reports[0].lastResult == "canceled" && world.state == "idle")
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
}
