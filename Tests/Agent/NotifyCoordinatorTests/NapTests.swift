// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// A desktop on which programs nap.
private struct Desk {
    var world: World
    static let second: Int64 = 1_000_000_000

    init(_ rules: NapRule..., user: UInt32? = nil, _ change: (inout Coordinator.Configuration) -> Void = { _ in }) {
        world = World { configuration in
            configuration.sources = ["sway"]
            configuration.naps = rules
            configuration.user = user
            change(&configuration)
        }
    }

    static func rule(
        _ applications: String...,
        depth: NapRule.Depth = .suspended,
        keeps: Set<NapRule.Use> = []
    ) -> NapRule {
        var rule = NapRule()
        (rule.applications, rule.depth, rule.keeps) = (applications, depth, keeps)
        return rule
    }

    static func process(
        _ pid: Int32,
        _ application: String = "",
        startTime: UInt64 = 1,
        ancestors: [Int32: UInt64] = [:],
        window: String = "",
        isFullscreen: Bool = false
    ) -> FocusedProcess {
        FocusedProcess(
            pid: pid,
            startTime: startTime,
            ancestors: ancestors,
            application: application,
            user: 1000,
            window: window,
            isFullscreen: isFullscreen
        )
    }

    mutating func focus(_ processes: FocusedProcess...) { report(.live, .focus(processes)) }

    mutating func report(_ condition: SourceCondition, _ fact: Fact?) {
        var news = SourceNews()
        (news.condition, news.fact, news.count) = (condition, fact, 1)
        world.send(.news(["sway": news]))
        world.settle()
    }

    /// Time passes, and everybody who has waited for it is called.
    mutating func pass(_ time: Int64) {
        let end = world.time + time
        while let alarm = world.napAlarm, alarm <= end {
            world.time = max(world.time, alarm)
            world.napAlarm = nil
            world.send(.napAlarm)
            world.settle()
        }
        world.time = end
    }

    /// Answers what was asked last.
    mutating func use(_ uses: [NapRule.Use: Set<FocusedProcess>]) {
        guard let question = world.useQuestion else { return }
        world.send(.areUsed(uses, question: question.number))
        world.settle()
    }

    func state(_ name: String) -> LifecycleState? {
        world.coordinator.id(of: name).flatMap { world.coordinator.entry(of: $0)?.state }
    }

    func decider(_ name: String) -> String? {
        world.coordinator.id(of: name).flatMap { world.coordinator.entry(of: $0)?.decider.name }
    }
}

@Suite struct NapTests {
    private static let mail = NapProgram(application: "org.example.Mail", World.process(7))
    private static let other = Desk.process(9, "org.example.Other")

    /// A mail program that observes, and has the focus.
    private func mail(_ rule: NapRule, _ change: (inout Newcomer.Statement) -> Void = { _ in }) throws -> Desk {
        var desk = Desk(rule)
        _ = try desk.world.register(
            ":1.1",
            World.process(7),
            ["com.example.mail"],
            application: "org.example.Mail",
            change
        )
        desk.world.settle()
        desk.focus(Desk.process(7, "org.example.Mail"))
        return desk
    }

    @Test func `a program naps ten seconds after it has lost the focus, and is awake as soon as it has it`() throws {
        var desk = try mail(Desk.rule("org.example.Mail"))
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.1") == .foreground && desk.world.napAlarm == nil)
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second - 1)
        #expect(desk.state(":1.1") == .foreground)
        desk.pass(1)
        #expect(desk.state(":1.1") == .suspended && desk.decider(":1.1") == "nap")
        desk.focus(Desk.process(7, "org.example.Mail"))
        #expect(desk.state(":1.1") == .foreground && desk.decider(":1.1") == "default")
        // Nothing is left to wake up for.
        #expect(desk.world.napAlarm == nil && desk.world.useQuestion == nil)
    }

    @Test func `who has the focus back in time does not nap, and begins to wait anew`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .background))
        desk.focus(NapTests.other)
        desk.pass(9 * Desk.second)
        desk.focus(Desk.process(7, "org.example.Mail"))
        #expect(desk.world.napAlarm == nil)
        desk.focus()
        desk.pass(9 * Desk.second)
        #expect(desk.state(":1.1") == .foreground)
        desk.pass(Desk.second)
        #expect(desk.state(":1.1") == .background)
    }

    @Test func `another process of the application has the focus for it`() throws {
        var desk = try mail(Desk.rule("org.example.Mail"))
        desk.focus(Desk.process(8, "org.example.Mail"))
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.1") == .foreground)
        desk.focus()
        desk.pass(10 * Desk.second)
        desk.focus(Desk.process(8, "org.example.Mail"))
        #expect(desk.state(":1.1") == .foreground)
    }

    @Test func `who has never had the focus does not nap, nor who is not named`() throws {
        var desk = Desk(Desk.rule("org.example.Mail"))
        for (number, application) in ["org.example.Mail", "org.example.Music"].enumerated() {
            _ = try desk.world.register(
                ":1.\(number)",
                World.process(Int32(7 + number)),
                ["com.example.a"],
                application: application
            )
        }
        desk.world.settle()
        desk.focus(NapTests.other)
        desk.focus(Desk.process(8, "org.example.Music"))
        desk.focus()
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.0") == .foreground && desk.state(":1.1") == .foreground)
    }

    @Test func `if it is unknown who has the focus, everybody is awake`() throws {
        for condition in [SourceCondition.off("sway went away"), .live] {
            var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen))
            desk.focus()
            desk.pass(10 * Desk.second)
            #expect(desk.world.frozenPrograms == [NapTests.mail: [7]])
            if condition == .live {
                desk.world.send(.sourceWasReset("sway", nil))
                desk.world.settle()
            } else {
                desk.report(condition, nil)
            }
            #expect(desk.world.frozenPrograms.isEmpty && desk.state(":1.1") == .foreground)
            #expect(desk.world.napAlarm == nil)
        }
    }

    // MARK: - Stopping

    @Test func `a program is stopped once it is suspended, and runs before it is told that it is awake`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen))
        desk.focus()
        desk.world.time += 10 * Desk.second
        desk.world.send(.napAlarm)
        #expect(desk.world.frozenPrograms.isEmpty)
        desk.world.settle()
        #expect(desk.world.frozenPrograms == [NapTests.mail: [7]])
        desk.world.send(.posted("com.example.mail"))
        desk.world.log = []
        desk.focus(Desk.process(7, "org.example.Mail"))
        #expect(desk.world.log == ["thaw app:org.example.Mail", "tell foreground", "deliver com.example.mail"])
    }

    @Test func `a program that observes nothing is stopped, too, with all its processes that had the focus`() {
        var desk = Desk(Desk.rule("steam", "steam_app_*", depth: .frozen))
        desk.focus(Desk.process(7, "steam"))
        desk.focus(Desk.process(8, "steam"))
        desk.focus(Desk.process(10, window: "steam_app_440"))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        let game = NapProgram(application: "", World.process(10))
        let steam = NapProgram(application: "steam", World.process(7))
        #expect(desk.world.frozenPrograms == [steam: [7, 8]])
        desk.use([.job: []])
        #expect(desk.world.frozenPrograms == [steam: [7, 8], game: [10]])
        desk.focus(Desk.process(8, "steam"))
        #expect(desk.world.frozenPrograms == [game: [10]])
        desk.world.send(.ending(keeping: []))
        #expect(desk.world.frozenPrograms.isEmpty)
    }

    @Test func `a process that has the focus often keeps no other of its program from being stopped`() {
        var desk = Desk(Desk.rule("steam", depth: .frozen))
        for pid: Int32 in [8] + Array(repeating: 7, count: 100) { desk.focus(Desk.process(pid, "steam")) }
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        #expect(desk.world.frozenPrograms.values.map(\.self) == [[7, 8]])
    }

    @Test func `a process without an application is a program, and so is what it has started`() {
        let program = NapProgram(application: "", World.process(7))
        #expect(Desk.process(7).belongs(to: program) && !Desk.process(7, startTime: 2).belongs(to: program))
        #expect(Desk.process(8, ancestors: [7: 1]).belongs(to: program))
        #expect(!Desk.process(8, ancestors: [7: 2]).belongs(to: program) && !Desk.process(8).belongs(to: program))
    }

    @Test func `a program whose child has the focus or is in use is awake, and wakes with what is stopped with it`() {
        let keeps: Set<NapRule.Use> = [.audio, .fullscreen]
        var desk = Desk(Desk.rule("steam", depth: .frozen, keeps: keeps))
        let steam = NapProgram(application: "", World.process(7))
        func game(_ startTime: UInt64 = 1, isFullscreen: Bool = false) -> FocusedProcess {
            Desk.process(8, ancestors: [7: startTime, 3: 1], window: "game", isFullscreen: isFullscreen)
        }
        desk.focus(Desk.process(7, window: "steam"))
        desk.focus(game())
        desk.pass(60 * Desk.second)
        #expect(desk.world.frozenPrograms.isEmpty && desk.world.useQuestion == nil)
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        desk.use([.audio: [game()]])
        #expect(desk.world.frozenPrograms.isEmpty)
        desk.use([.audio: []])
        desk.pass(10 * Desk.second)
        // Another process has the number of the one that has started it.
        desk.use([.audio: [game(9)]])
        #expect(desk.world.frozenPrograms == [steam: [7]])
        desk.focus(game(9))
        #expect(desk.world.frozenPrograms == [steam: [7]])
        desk.focus(game())
        #expect(desk.world.frozenPrograms.isEmpty)
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        desk.use([.audio: []])
        #expect(desk.world.frozenPrograms == [steam: [7]])
        // It is no longer known which process has started it.
        desk.world.send(.frozeProgram(steam, [World.process(7), World.process(8)]))
        desk.focus(Desk.process(8, startTime: 2))
        #expect(desk.world.frozenPrograms == [steam: [7]])
        desk.focus(Desk.process(8))
        #expect(desk.world.frozenPrograms.isEmpty)
        desk.focus(game(isFullscreen: true))
        desk.focus(NapTests.other)
        desk.pass(60 * Desk.second)
        #expect(desk.world.useQuestion == nil && desk.world.frozenPrograms.isEmpty)
    }

    @Test func `a later process with the number of one that has had the focus does not nap`() throws {
        var desk = Desk(Desk.rule("org.example.Mail", "game"))
        desk.focus(Desk.process(7, startTime: 9, window: "game"))
        desk.focus(NapTests.other)
        _ = try desk.world.register(":1.1", World.process(7), ["com.example.mail"])
        desk.world.settle()
        desk.pass(10 * Desk.second)
        desk.use([.job: []])
        #expect(desk.state(":1.1") == .foreground)
    }

    @Test func `a program that follows the desktop has a second to get ready, or until it says that it is`() throws {
        for isReady in [false, true] {
            var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen)) { $0.followsDesktop = true }
            desk.focus(NapTests.other)
            desk.pass(10 * Desk.second)
            #expect(desk.state(":1.1") == .suspended && desk.world.frozenPrograms.isEmpty)
            let call = desk.world.call()
            if isReady {
                desk.world.send(.report(call, from: ":1.1", .suspended))
                #expect(desk.world.answers[call] == .done)
            } else {
                desk.pass(Desk.second - 1)
                #expect(desk.world.frozenPrograms.isEmpty)
                desk.pass(1)
            }
            #expect(desk.world.frozenPrograms == [NapTests.mail: [7]])
            desk.focus(Desk.process(7, "org.example.Mail"))
            // Its report was about this nap.
            #expect(desk.state(":1.1") == .foreground && desk.world.frozenPrograms.isEmpty)
        }
    }

    @Test func `a connection that was on its way when its program was stopped gets its answer, and the nap goes on`()
        throws
    {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        #expect(desk.world.frozenPrograms == [NapTests.mail: [7]])
        let call = try desk.world.register(
            ":1.2",
            World.process(7),
            ["com.example.b"],
            application: "org.example.Mail"
        )
        #expect(desk.world.frozenPrograms.isEmpty)
        desk.world.settle()
        #expect(desk.world.answers[call] == .registered(.suspended, pending: [], isComplete: false))
        #expect(desk.state(":1.2") == .suspended && desk.world.frozenPrograms == [NapTests.mail: [7]])
    }

    @Test func `a program that was woken for a new process is stopped again when that has ended`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        #expect(desk.world.frozenPrograms == [NapTests.mail: [7]])
        let process = World.process(8)
        _ = try desk.world.register(":1.2", process, ["com.example.b"], application: "org.example.Mail")
        #expect(desk.world.frozenPrograms.isEmpty)
        desk.world.send(.processEnded(process))
        desk.world.settle()
        #expect(desk.world.frozenPrograms == [NapTests.mail: [7]])
    }

    @Test func `a program that objects in its last second is not stopped`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen)) { $0.followsDesktop = true }
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        desk.world.send(.report(desk.world.call(), from: ":1.1", .foreground))
        desk.world.settle()
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.1") == .foreground && desk.world.frozenPrograms.isEmpty)
    }

    // MARK: - Who wins

    @Test func `a person, the program and the exemption win`() throws {
        var desk = try mail(Desk.rule("*", depth: .frozen))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        desk.use([.job: []])
        #expect(desk.world.frozenPrograms == [NapTests.mail: [7]])
        // A person wakes it although it does not have the focus.
        desk.world.log = []
        _ = try desk.world.set("pid:7", .foreground)
        desk.world.settle()
        #expect(desk.world.log.prefix(2) == ["thaw app:org.example.Mail", "tell foreground"])
        #expect(desk.state(":1.1") == .foreground && desk.world.frozenPrograms.isEmpty)
        // It goes on to nap when the person lets it.
        desk.world.send(.release(desk.world.call(), by: Caller(user: 1000), Target("pid:7")))
        desk.world.settle()
        #expect(desk.state(":1.1") == .suspended && desk.world.frozenPrograms == [NapTests.mail: [7]])

        var exempt = Desk(Desk.rule("*", depth: .frozen)) { $0.exemptApplications = ["org.example.Mail"] }
        exempt.focus(Desk.process(7, "org.example.Mail"))
        exempt.focus()
        exempt.pass(60 * Desk.second)
        #expect(exempt.world.useQuestion == nil && exempt.world.frozenPrograms.isEmpty)
    }

    @Test func `a person who freezes a program that naps has it stopped as a person`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        let call = try desk.world.set("pid:7", .suspended, freezes: true)
        desk.world.settle()
        #expect(desk.world.answers[call] == .connections(1))
        #expect(desk.world.still == [World.process(7)] && desk.world.frozenPrograms.isEmpty)
        desk.focus(Desk.process(7, "org.example.Mail"))
        #expect(desk.world.still == [World.process(7)] && desk.state(":1.1") == .suspended)
    }

    @Test func `programs of other users do not nap`() {
        var desk = Desk(Desk.rule("*", depth: .frozen), user: 1001)
        desk.focus(Desk.process(7, "org.example.Mail"))
        desk.focus()
        desk.pass(60 * Desk.second)
        #expect(desk.world.useQuestion == nil && desk.world.frozenPrograms.isEmpty)
    }

    // MARK: - Use

    @Test func `who is in use stays awake, and naps after another while`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", keeps: [.audio]))
        let player = Desk.process(70, "org.example.Mail")
        desk.focus(NapTests.other)
        #expect(desk.world.useQuestion == nil)
        desk.pass(10 * Desk.second)
        #expect(desk.world.useQuestion?.uses == [.audio] && desk.world.useQuestion?.terminals == [])
        desk.use([.audio: [player]])
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.1") == .foreground && desk.world.napAlarm == nil)
        desk.use([.audio: []])
        #expect(desk.state(":1.1") == .foreground && desk.world.useQuestion == nil)
        desk.pass(10 * Desk.second)
        desk.use([.audio: [Desk.process(71, "org.example.Music")]])
        #expect(desk.state(":1.1") == .suspended)
        // No question is asked while no nap depends on the answer.
        #expect(desk.world.useQuestion == nil)
    }

    @Test func `an answer to an earlier question does not count`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", keeps: [.audio]))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        let first = try #require(desk.world.useQuestion)
        desk.focus(Desk.process(7, "org.example.Mail"))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        desk.world.send(.areUsed([.audio: []], question: first.number))
        desk.world.settle()
        #expect(desk.state(":1.1") == .foreground)
        desk.use([.audio: []])
        #expect(desk.state(":1.1") == .suspended)
    }

    @Test func `a window that was fullscreen, and a terminal with a job, stay awake until they have had the focus`() {
        var desk = Desk(Desk.rule("*", depth: .frozen, keeps: [.fullscreen]))
        desk.focus(Desk.process(7, "org.example.Film", isFullscreen: true))
        desk.focus(Desk.process(8, "org.example.Terminal"))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        #expect(desk.world.useQuestion?.terminals == [8])
        desk.use([.job: [Desk.process(8, "org.example.Terminal")]])
        desk.pass(60 * Desk.second)
        #expect(desk.world.frozenPrograms.isEmpty && desk.world.useQuestion == nil && desk.world.napAlarm == nil)
        desk.focus(Desk.process(7, "org.example.Film"), Desk.process(8, "org.example.Terminal"))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        desk.use([.job: []])
        #expect(desk.world.frozenPrograms.values.sorted { $0[0] < $1[0] } == [[7], [8]])
    }

    @Test func `a terminal that is named naps whatever runs in it`() {
        var desk = Desk(Desk.rule("*", "org.example.Terminal.desktop", depth: .frozen))
        desk.focus(Desk.process(8, "org.example.Terminal"))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        #expect(desk.world.frozenPrograms.values.map(\.self) == [[8]])
    }

    // MARK: - Off

    @Test func `when naps are turned off, no program naps until they are turned on`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        let off = desk.world.call()
        desk.world.send(.setNaps(off, by: Caller(user: 1000), false))
        desk.world.settle()
        #expect(desk.world.answers[off] == .done && desk.world.frozenPrograms.isEmpty)
        #expect(desk.state(":1.1") == .foreground)
        desk.focus(Desk.process(7, "org.example.Mail"))
        desk.focus(NapTests.other)
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.1") == .foreground && desk.world.napAlarm == nil)
        desk.world.send(.setNaps(desk.world.call(), by: Caller(user: 1000), true))
        desk.pass(10 * Desk.second)
        #expect(desk.state(":1.1") == .suspended)
    }

    @Test func `only the user of the session and root turn naps off`() {
        var desk = Desk(Desk.rule("org.example.Mail"), user: 1000)
        for (user, mayTurn) in [(UInt32(1001), false), (1000, true), (0, true)] {
            let call = desk.world.call()
            desk.world.send(.setNaps(call, by: Caller(user: user), false))
            #expect((desk.world.answers[call] == .done) == mayTurn)
            #expect((desk.world.refusals[call]?.kind == .accessDenied) != mayTurn)
        }
    }

    @Test func `on battery only, a program naps while the machine is known to run on it`() throws {
        var rule = Desk.rule("org.example.Mail")
        rule.needsBattery = true
        let power: NotifyName = "com.apple.system.powersources.percent"
        var desk = Desk(rule) { ($0.powerName, $0.interests, $0.events) = (power, [power], [power]) }
        _ = try desk.world.register(
            ":1.1",
            World.process(7),
            ["com.example.a"],
            application: "org.example.Mail"
        )
        desk.world.settle()
        #expect(desk.world.wanted == [power])
        desk.focus(Desk.process(7, "org.example.Mail"))
        desk.focus(NapTests.other)
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.1") == .foreground)
        desk.world.send(.eventState(power, 50))
        desk.pass(10 * Desk.second)
        #expect(desk.state(":1.1") == .suspended)
        desk.world.send(.eventState(power, 50 | 1 << 16))
        desk.world.settle()
        #expect(desk.state(":1.1") == .foreground)
        desk.pass(60 * Desk.second)
        #expect(desk.state(":1.1") == .foreground)
    }

    // MARK: - Patterns

    @Test(arguments: [
        ("steam_app_*", "steam_app_440", true), ("steam_app_*", "steam_app_", true), ("steam_app_*", "steam", false),
        ("*.Mail", "org.example.Mail", true), ("org.*.M*l", "org.example.Mail", true), ("a*b*c", "a--b-b--c", true),
        ("a*b*c", "a--b-b--", false), ("**", "", true), ("", "", true), ("a", "", false), ("*é", "café", true),
    ])
    func `a star stands for any characters`(pattern: String, text: String, matches: Bool) {
        #expect(NapRule.matches(text.utf8, pattern.utf8) == matches)
    }

    @Test func `a hostile pattern does not take long`() {
        let text = String(repeating: "a", count: 200)
        #expect(!NapRule.matches(text.utf8, (String(repeating: "a*", count: 100) + "b").utf8))
    }

    @Test func `more programs than anybody looks at are not kept in mind`() {
        var desk = Desk(Desk.rule("*", depth: .frozen))
        for pid in 1...2_000 { desk.focus(Desk.process(Int32(pid), "org.example.A\(pid)")) }
        desk.focus()
        desk.pass(10 * Desk.second)
        desk.use([.job: []])
        #expect((1...Naps.maximumPrograms).contains(desk.world.frozenPrograms.count))
        // It is not known whether those have ended, so they make room for others.
        for pid in 3_001...3_256 { desk.focus(Desk.process(Int32(pid), "org.example.A\(pid)")) }
        #expect(desk.world.frozenPrograms.isEmpty)
        desk.focus()
        desk.pass(10 * Desk.second)
        desk.use([.job: []])
        #expect(!desk.world.frozenPrograms.isEmpty)
        desk.report(.off("gone"), nil)
        #expect(desk.world.frozenPrograms.isEmpty)
    }

    @Test func `turned off and on again, programs without the focus nap after another while`() throws {
        var desk = try mail(Desk.rule("org.example.Mail", depth: .frozen))
        desk.focus(NapTests.other)
        desk.pass(10 * Desk.second)
        #expect(desk.world.coordinator.naps.text == "on, 1 program asleep")
        desk.world.send(.setNaps(desk.world.call(), by: Caller(user: 1000), false))
        desk.world.settle()
        #expect(desk.world.coordinator.naps.text == "off" && desk.state(":1.1") == .foreground)
        desk.world.send(.setNaps(desk.world.call(), by: Caller(user: 1000), true))
        desk.world.settle()
        #expect(desk.world.coordinator.naps.text == "on, 0 programs asleep")
        desk.pass(10 * Desk.second)
        #expect(desk.state(":1.1") == .suspended)
    }

    @Test func `a question about terminals has their numbers in order`() {
        var desk = Desk(Desk.rule("*"))
        let numbers: [Int32] = [17, 11, 15, 12, 18, 13]
        for number in numbers { desk.focus(Desk.process(number, "org.example.Terminal\(number)")) }
        desk.focus(Desk.process(9, "org.example.Other"))
        desk.pass(10 * Desk.second)
        #expect(desk.world.useQuestion?.terminals == numbers.sorted())
    }

    @Test func `an alarm that comes too early is set once more`() throws {
        var desk = try mail(Desk.rule("org.example.Mail"))
        desk.focus(NapTests.other)
        let alarm = try #require(desk.world.napAlarm)
        desk.world.napAlarm = nil
        desk.world.send(.napAlarm)
        #expect(desk.world.napAlarm == alarm && desk.state(":1.1") == .foreground)
    }
}
