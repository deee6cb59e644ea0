// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// What a started program is told of the posts that it was started for, and what starts it again.
@Suite struct LaunchedProgramTests {
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

    @Test func `a program that has passed on its bus name hears for the entry no more`() {
        var world = LauncherWorld { $0.action = .activation("org.example.A") }
        let (first, second) = (ConnectionID(7), ConnectionID(8))
        let subjects = Subjects(names: [LauncherWorld.name])
        world.take(.activity(world.id, true))
        world.take(.programIsKnown(world.id, [(first, subjects)]))
        #expect(world.heard.isEmpty)
        // The other one has its own connections, of which none observes yet.
        world.take(.activity(world.id, true))
        world.take(.programIsKnown(world.id, []))
        #expect(world.heard == subjects)
        world.take(.programIsKnown(world.id, [(second, subjects)]))
        #expect(world.heard.isEmpty)
        world.take(.left(first))
        #expect(world.heard.isEmpty)
        world.take(.left(second))
        #expect(world.heard == subjects)
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

    @Test func `a program that ends before it is told is started again for that`() {
        var world = LauncherWorld { $0.subjects.prefixes = [NamePrefix("com.example.")] }
        world.take(.activity(world.id, true))
        world.take(.observes(ConnectionID(7), [world.id], Subjects(names: [LauncherWorld.other]), isNew: true))
        world.post(LauncherWorld.other)
        #expect(world.starts.isEmpty && world.launcher.reports[0].due == 0)
        world.take(.activity(world.id, false))
        #expect(world.starts.count == 1)
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
}
