// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// What an agent leaves to the next one about programs that are started for names.
@Suite struct LaunchHeritageTests {
    private static let unit = LaunchEntry.Action.unit("a.service")
    private static let name = LauncherWorld.name

    private func heritage(_ change: (inout LaunchHeritage) -> Void) -> LaunchHeritage {
        var heritage = LaunchHeritage(title: "a", action: Self.unit)
        change(&heritage)
        return heritage
    }

    /// The next agent, which does not know yet whether the program runs.
    private func successor(
        _ heritage: [LaunchHeritage],
        at now: Int64 = 0,
        _ change: (inout LaunchEntry) -> Void = { _ in }
    ) -> LauncherWorld {
        var world = LauncherWorld()
        world.take(.load([]))
        world.now = now
        world.launcher = Launcher()
        world.take(.manager(obstacle: nil))
        var entry = LaunchEntry(title: "a", action: Self.unit)
        entry.subjects.names = [Self.name]
        change(&entry)
        world.take(.load([entry], inheriting: heritage))
        return world
    }

    @Test func `what is due is handed over from agent to agent, and started once`() {
        var world = LauncherWorld { $0.settle = 1_000 }
        world.post()
        #expect(world.starts.isEmpty && world.launcher.isAtRest)
        for _ in 0..<3 {
            let left = world.launcher.heritage
            #expect(left.map(\.due) == [[Self.name]])
            world = successor(left)
        }
        #expect(world.starts.isEmpty)
        // Both agents have heard it.
        world.post()
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1)
        world.runThrough()
        #expect(world.starts.count == 1 && world.state == "idle")
    }

    @Test func `a start that was accepted is not handed over, and what came since is`() {
        var world = LauncherWorld()
        world.post()
        #expect(world.starts.count == 1 && !world.launcher.isAtRest)
        let waiting = world.launcher.heritage
        #expect(waiting.map(\.due) == [[Self.name]] && waiting.map(\.recentStarts) == [[]])
        world.take(.accepted(world.id, number: 1))
        world.take(.activity(world.id, true))
        #expect(world.launcher.isAtRest)
        let running = world.launcher.heritage
        #expect(running.map(\.due) == [[]] && running.map(\.missed) == [[Self.name]])
        #expect(running.map(\.recentStarts) == [[0]])
        world.post()
        #expect(world.launcher.heritage.map(\.due) == [[Self.name]])
        var next = successor(world.launcher.heritage)
        next.take(.activity(next.id, true))
        #expect(next.starts.isEmpty && next.state == "running")
        // It was not told of it yet.
        next.take(.observes(ConnectionID(7), [next.id], Subjects(names: [Self.name]), isNew: false))
        #expect(next.delivered == [Self.name] && next.launcher.reports[0].due == 0)
    }

    @Test func `an agent that is about to leave starts nothing, and does so if it stays`() {
        for settle: Int64 in [0, 1_000] {
            var world = LauncherWorld { $0.settle = settle }
            world.take(.holdBack(true))
            world.post()
            world.wait(10_000)
            #expect(world.starts.isEmpty && world.state == "idle" && world.launcher.isAtRest)
            #expect(world.launcher.heritage.map(\.due) == [[Self.name]])
            world.take(.holdBack(false))
            world.wait(10_000)
            #expect(world.starts.count == 1)
        }
        // The same for one that is added meanwhile.
        var world = LauncherWorld()
        world.take(.holdBack(true))
        let actions: [LaunchEntry.Action] = [Self.unit, .activation("com.example.Service")]
        for (id, action) in zip([LaunchID(2), LaunchID(3)], actions) {
            var entry = LaunchEntry(title: "b", action: action)
            entry.subjects.names = [Self.name]
            world.take(.load([entry]))
            world.take(.activity(id, false))
            world.take(.heard(Self.name, [id]))
            #expect(world.starts.isEmpty && world.launcher.reports[0].due == 1)
            #expect(world.launcher.heritage.map(\.due) == [[Self.name]])
        }
        world.take(.holdBack(false))
        #expect(world.starts.count == 1)
    }

    @Test func `what was handed over while the service manager is away starts its program when it is back`() {
        for obstacles in [[], ["away"], ["away", "silent"]] as [[String]] {
            var world = LauncherWorld()
            world.take(.load([]))
            world.launcher = Launcher()
            var entry = LaunchEntry(title: "a", action: Self.unit)
            entry.subjects.names = [Self.name]
            world.take(.load([entry], inheriting: [heritage { $0.due = [Self.name] }]))
            for obstacle in obstacles { world.take(.manager(obstacle: obstacle)) }
            #expect(world.state == "waking" && world.launcher.reports[0].due == 1 && world.starts.isEmpty)
            world.take(.manager(obstacle: nil))
            world.take(.activity(world.id, false))
            #expect(world.starts.count == 1)
        }
    }

    @Test func `that there is a service manager is handed over, although nothing is due`() {
        for obstacle in [nil, "away"] {
            var world = LauncherWorld()
            if let obstacle { world.take(.manager(obstacle: obstacle)) }
            let left = world.launcher.heritage
            #expect(left.map(\.title) == ["a"] && left.allSatisfy(\.isEmpty))
            world.launcher = Launcher()
            var entry = LaunchEntry(title: "a", action: Self.unit)
            entry.subjects.names = [Self.name]
            world.take(.load([entry], inheriting: left))
            world.take(.manager(obstacle: "away"))
            world.post()
            #expect(world.state == "waking" && world.launcher.reports[0].due == 1)
            world.take(.manager(obstacle: nil))
            world.take(.activity(world.id, false))
            #expect(world.starts.count == 1)
        }
        // Nobody knows of one.
        let world = LauncherWorld(withManager: false)
        #expect(world.state == "off" && world.launcher.heritage.isEmpty)
    }

    @Test func `a command whose start may have to be tried again is not at rest`() {
        var world = LauncherWorld { $0.action = .command(["true"]) }
        world.post()
        world.take(.activity(world.id, true))
        #expect(!world.launcher.isAtRest)
        world.end()
        #expect(world.launcher.isAtRest)
    }

    @Test func `what a running program has heard itself does not start it again, unless it has exited`() {
        for isRunning in [true, false] {
            let left = heritage { ($0.heard.names, $0.missed) = ([Self.name], [Self.name]) }
            var next = successor([left]) { $0.onBusy = .restart }
            next.post()
            next.take(.activity(next.id, isRunning))
            #expect(next.starts.count == (isRunning ? 0 : 1))
            next.take(.observes(ConnectionID(7), [next.id], Subjects(names: [Self.name]), isNew: false))
            #expect(next.delivered == (isRunning ? [] : [Self.name]))
        }
    }

    @Test func `what an ended program was still to be told is nothing to one that others start later`() {
        var next = successor([heritage { $0.missed = [Self.name] }])
        for isRunning in [false, true] { next.take(.activity(next.id, isRunning)) }
        next.take(.observes(ConnectionID(7), [next.id], Subjects(names: [Self.name]), isNew: false))
        #expect(next.starts.isEmpty && next.delivered.isEmpty)
    }

    @Test func `an agent that has yet to find out what runs hands over all that it was told`() {
        let left = heritage { left in
            (left.due, left.missed, left.recentStarts) = ([Self.name], [LauncherWorld.other], [5])
            left.heard.names = ["com.example.c"]
        }
        let world = successor([left], at: 10) { $0.subjects.names = [Self.name, LauncherWorld.other, "com.example.c"] }
        #expect(world.launcher.heritage == [left])
    }

    @Test func `what was left is nothing to an entry that says something else now`() {
        let left = heritage { $0.due = [Self.name] }
        let changes: [(inout LaunchEntry) -> Void] = [
            { $0.action = .unit("b.service") }, { $0.title = "b" }, { $0.subjects.names = [LauncherWorld.other] },
        ]
        for change in changes {
            var next = successor([left], change)
            next.take(.activity(next.id, false))
            #expect(next.starts.isEmpty && next.launcher.reports[0].due == 0)
        }
    }

    @Test func `starts count towards the limit of the next agent, but none that is yet to come`() {
        for (start, isLimited) in [(5, true), (Int64.max, false), (-1, false)] as [(Int64, Bool)] {
            let left = heritage { ($0.due, $0.recentStarts) = ([Self.name], [start]) }
            var next = successor([left], at: 10) { $0.limit = LaunchEntry.Limit(starts: 1, window: 100) }
            next.take(.activity(next.id, false))
            #expect(next.starts.isEmpty == isLimited)
            next.wait(100)
            #expect(next.starts.count == 1)
        }
    }

    @Test func `of what programs hear, only what their files name counts`() throws {
        let (name, prefix) = (NotifyName("com.example.c"), NamePrefix("com.example.d."))
        let left = heritage { left in
            left.heard = Subjects(names: [Self.name, name], prefixes: [prefix, NamePrefix("com.example.e.")])
        }
        let next = successor([left]) { entry in
            entry.subjects = Subjects(names: [name, LauncherWorld.other], prefixes: [prefix])
        }
        #expect(next.launcher.heritage.map(\.heard) == [Subjects(names: [name], prefixes: [prefix])])
    }

    @Test func `an entry that is off leaves nothing, as nothing is known of its program any more`() {
        let left = heritage { ($0.heard.names, $0.recentStarts) = ([Self.name], [5]) }
        var world = successor([left], at: 10)
        #expect(world.launcher.heritage == [left])
        var entry = world.launcher.entries[0].1
        entry.isEnabled = false
        world.take(.load([entry]))
        #expect(world.launcher.heritage.isEmpty)
    }

    @Test func `what programs hear is handed over in bounded number`() throws {
        let names = Set(try (0..<262_200).map { try NotifyName("com.example.n\($0)") })
        let next = successor([heritage { $0.heard.names = names }]) { $0.subjects.names = names }
        #expect(next.launcher.heritage.map(\.heard.names.count) == [262_144])
    }
}
