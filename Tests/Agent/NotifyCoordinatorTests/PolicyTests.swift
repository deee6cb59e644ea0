// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames
import Testing

/// Who decides, as a table, without a bus.
@Suite struct PolicyTests {
    private struct Row: Sendable {
        var person: LifecycleState?
        var report: LifecycleState?
        var absence: String?
        var sleep: String?
        var follows: FactPolicy.Facts = []
        var focus: Bool?
        var isExempt = false
        let expected: Decision

        init(
            person: LifecycleState? = nil,
            report: LifecycleState? = nil,
            absence: String? = nil,
            sleep: String? = nil,
            follows: FactPolicy.Facts = [],
            focus: Bool? = nil,
            isExempt: Bool = false,
            _ state: LifecycleState,
            _ decider: Decider
        ) {
            (self.person, self.report, self.absence, self.sleep) = (person, report, absence, sleep)
            (self.follows, self.focus, self.isExempt) = (follows, focus, isExempt)
            expected = Decision(state, by: decider)
        }
    }

    private static let rows: [Row] = [
        Row(.foreground, .rule),
        // The desktop affects only those who follow it.
        Row(absence: "logind", sleep: "logind", focus: false, .foreground, .rule),
        Row(absence: "logind", follows: [.focus, .sleep], .foreground, .rule),
        Row(sleep: "logind", follows: [.focus, .session], .foreground, .rule),
        // The session and sleep.
        Row(absence: "logind", follows: .session, .background, .source("logind")),
        Row(absence: "logind", follows: [.focus, .session], focus: true, .background, .source("logind")),
        Row(sleep: "logind", follows: .sleep, .background, .source("logind")),
        // The focus affects those who follow it, and only while it is known.
        Row(focus: false, .foreground, .rule),
        Row(focus: true, .foreground, .rule),
        Row(follows: [.focus, .session], .foreground, .rule),
        Row(follows: .focus, focus: true, .foreground, .source("x11")),
        Row(follows: .focus, focus: false, .background, .source("x11")),
        Row(follows: [.session, .sleep], focus: false, .foreground, .rule),
        // The program itself overrides the sources.
        Row(report: .foreground, absence: "logind", follows: .session, .foreground, .program),
        Row(report: .background, follows: .focus, focus: true, .background, .program),
        Row(report: .suspended, .suspended, .program),
        // A person overrides them all.
        Row(person: .foreground, report: .background, absence: "logind", follows: .session, .foreground, .person),
        Row(person: .foreground, follows: .focus, focus: false, .foreground, .person),
        Row(person: .suspended, report: .foreground, follows: .focus, focus: true, .suspended, .person),
        Row(person: .background, report: .foreground, .background, .person),
        // An exempt application is affected only by itself.
        Row(
            absence: "logind",
            follows: [.focus, .session],
            focus: false,
            isExempt: true,
            .foreground,
            .exemption
        ),
        Row(person: .background, isExempt: true, .foreground, .exemption),
        Row(report: .background, isExempt: true, .background, .program),
    ]

    @Test
    func
        `a person overrides the program, the program the sources, and a source only takes the foreground away`()
    {
        for row in PolicyTests.rows {
            var known = Circumstances()
            known.person = row.person
            known.report = row.report
            known.follows = row.follows
            known.absence = row.absence
            known.sleep = row.sleep
            known.focus = row.focus.map { ($0, "x11") }
            known.isExempt = row.isExempt
            #expect(known.decision == row.expected, "\(row)")
        }
    }

    @Test func `what an earlier agent's source decided lasts until this agent's source has reported`() {
        var known = Circumstances()
        known.remembered = Decision(.background, by: .source("logind"))
        #expect(known.decision == Decision(.background, by: .source("logind")))
        known.person = .foreground
        #expect(known.decision == Decision(.foreground, by: .person))
        #expect(
            [Decider.person, .program, .exemption, .rule, .source("x11")].allSatisfy { Decider(name: $0.name) == $0 }
        )
        // An observer that doesn't say who decided keeps its state.
        #expect(Decider(name: "") == .person)
    }

    @Test func `the desktop affects those who opt in, and those whom the user names`() {
        let policy = FactPolicy()
        #expect(policy.facts(for: "a", asks: false) == [])
        // Even a program that follows the desktop may have something to do before the machine sleeps.
        #expect(policy.facts(for: "a", asks: true) == [.focus, .session])
        #expect(policy.facts(for: "", asks: true) == [.focus, .session])
    }

    @Test func `for each kind of fact the user says whom it affects`() {
        let kinds: [(WritableKeyPath<FactPolicy, FactPolicy.Followers>, FactPolicy.Facts)] = [
            (\.focus, .focus), (\.session, .session), (\.sleep, .sleep),
        ]
        for (kind, fact) in kinds {
            var policy = FactPolicy()
            (policy.focus.others, policy.session.others, policy.sleep.others) = (.nobody, .nobody, .nobody)
            #expect(policy.facts(for: "a", asks: true) == [])
            policy[keyPath: kind].others = .asking
            #expect(policy.facts(for: "a", asks: false) == [] && policy.facts(for: "a", asks: true) == fact)
            policy[keyPath: kind].applications = ["a"]
            #expect(policy.facts(for: "a", asks: false) == fact)
            #expect(policy.facts(for: "b", asks: false) == [] && policy.facts(for: "b", asks: true) == fact)
            policy[keyPath: kind].others = .everyone
            #expect(policy.facts(for: "", asks: false) == fact)
            // A named application follows, whatever applies to the others.
            policy[keyPath: kind].others = .nobody
            #expect(policy.facts(for: "a", asks: false) == fact && policy.facts(for: "b", asks: true) == [])
        }
    }

    // MARK: - Sessions

    private func session(_ user: UInt32, _ type: String, active: Bool = true, locked: Bool = false) -> Logins.Session {
        var session = Logins.Session(user: user)
        (session.type, session.category, session.isActive, session.isLocked) = (type, "user", active, locked)
        return session
    }

    @Test func `a program is away when its own session, or each graphical one of its user, is inactive or locked`() {
        var logins = Logins()
        // A user without a session, such as a service.
        #expect(!logins.areAway(from: 1000, session: nil))
        logins.sessions["2"] = session(1000, "wayland")
        #expect(!logins.areAway(from: 1000, session: nil))
        logins.sessions["2"]?.isLocked = true
        #expect(logins.areAway(from: 1000, session: nil))
        #expect(!logins.areAway(from: 1001, session: nil))
        // A user logged in over ssh doesn't see the locked desktop; programs of that login go on.
        logins.sessions["5"] = session(1000, "tty")
        #expect(logins.areAway(from: 1000, session: nil))
        #expect(!logins.areAway(from: 1000, session: "5"))
        #expect(logins.areAway(from: 1000, session: "2"))
        // A second, unlocked desktop is enough.
        logins.sessions["7"] = session(1000, "x11")
        #expect(!logins.areAway(from: 1000, session: nil))
        logins.sessions["7"]?.isActive = false
        #expect(logins.areAway(from: 1000, session: nil))
        // Another user's session doesn't count, whatever the cgroup says.
        logins.sessions["9"] = session(1001, "x11", locked: true)
        #expect(!logins.areAway(from: 1002, session: "9"))
        // A greeter is not a user's desktop.
        logins.sessions = ["c1": session(120, "x11", active: false)]
        logins.sessions["c1"]?.category = "greeter"
        #expect(!logins.areAway(from: 120, session: nil))
    }

    @Test func `with several sources of the focus one suffices to be in front, and one that is off doesn't count`() {
        var table = SourceTable(["x11", "shell"])
        #expect(table.focus(pid: 5, application: "", user: 0) == nil)
        table.set(.live, of: "x11")
        #expect(table.focus(pid: 5, application: "", user: 0) == nil)
        table.note(.focus([]), from: "x11")
        #expect(table.focus(pid: 5, application: "", user: 0)?.hasIt == false)
        table.set(.live, of: "shell")
        table.note(.focus([FocusedProcess(pid: 5, application: "org.example.A", user: 1000)]), from: "shell")
        #expect(table.focus(pid: 5, application: "", user: 0)?.hasIt == true)
        // A helper of the same application has the focus too, but not another user's, nor one without an application.
        #expect(table.focus(pid: 6, application: "org.example.A", user: 1000)?.source == "shell")
        #expect(table.focus(pid: 6, application: "org.example.A", user: 1001)?.hasIt == false)
        #expect(table.focus(pid: 6, application: "", user: 1000)?.hasIt == false)
        table.set(.off("gone"), of: "shell")
        #expect(table.focus(pid: 5, application: "", user: 0)?.hasIt == false)
        table.set(.off("gone"), of: "x11")
        #expect(table.focus(pid: 5, application: "", user: 0) == nil)
    }

    // MARK: - Sources

    private func news(_ condition: SourceCondition? = nil, _ fact: Fact? = nil, count: UInt64 = 0) -> SourceNews {
        var news = SourceNews()
        (news.condition, news.fact, news.count) = (condition, fact, count)
        return news
    }

    @Test func `a fact is announced if it is shown differently, and always counts`() {
        var table = SourceTable(["x11", "shell"])
        let one = FocusedProcess(pid: 5, application: "a", user: 1)
        var changes = table.note(["x11": news(.live, .focus([one]), count: 3), "other": news(.live, .focus([]))])
        #expect(changes.map(\.source) == ["x11"] && changes.map(\.fact) == [.focus([one])])
        #expect(table.entries.map(\.count) == [3, 0] && table.entries.map(\.condition) == [.live, nil])
        #expect(table.note(["x11": news(nil, .focus([one]), count: 1)]).isEmpty)
        // As another user's it is another fact, but looks the same.
        let two = FocusedProcess(pid: 5, application: "a", user: 2)
        #expect(table.note(["x11": news(nil, .focus([two]), count: 1)]).isEmpty)
        #expect(table.entries[0].fact == .focus([two]) && table.entries[0].count == 5)
        // Without news nothing changes.
        #expect(table.note([:]).isEmpty && table.entries[0].fact == .focus([two]))
        // Facts from a source that is off don't count, and are announced again.
        #expect(table.note(["x11": news(.off("gone"))]).isEmpty)
        #expect(table.entries[0].fact == nil && table.focus(pid: 5, application: "a", user: 2) == nil)
        changes = table.note(["x11": news(.live, .focus([two]))])
        #expect(changes.map(\.source) == ["x11"])
        table.note(.focus([]), from: "shell")
        #expect(table.entries.map(\.count) == [5, 1] && table.contains("shell") && !table.contains("other"))
    }

    @Test func `a source is settled once it has said something, or will not`() {
        var table = SourceTable(["x11"])
        #expect(!table.isSettled("x11") && table.isSettled("other"))
        table.set(.live, of: "x11")
        #expect(!table.isSettled("x11"))
        table.note(.focus([]), from: "x11")
        #expect(table.isSettled("x11"))
        table.reset("x11", nil)
        #expect(!table.isSettled("x11") && table.entries[0].fact == nil)
        table.reset("x11", .off("stopped"))
        #expect(table.isSettled("x11"))
    }

    @Test func `the first source that says so is the one that decides`() {
        var table = SourceTable(["x11", "logind", "other"])
        var logins = Logins()
        logins.sessions["2"] = session(1000, "x11", locked: true)
        table.set(.live, of: "x11")
        table.note(.focus([]), from: "x11")
        for source in ["other", "logind"] {
            table.note(.logins(logins), from: source)
            #expect(table.absence(user: 1000, session: "2") == (source == "other" ? nil : "other"))
            table.set(.live, of: source)
            #expect(table.absence(user: 1000, session: "2") == source)
        }
        #expect(table.absence(user: 1001, session: "2") == nil && table.sleep == nil)
        logins.isAsleep = true
        table.note(.logins(logins), from: "other")
        #expect(table.sleep == "other")
    }

    @Test func `a source that has searched only some processes says nothing about others`() {
        var table = SourceTable(["x11"])
        table.set(.live, of: "x11")
        table.note(.focus([], among: [5]), from: "x11")
        #expect(table.focus(pid: 5, application: "", user: 0)?.hasIt == false)
        #expect(table.focus(pid: 6, application: "", user: 0) == nil)
    }

    @Test func `each fact is shown on one line`() {
        let one = FocusedProcess(pid: 5, application: "", user: 1)
        let two = FocusedProcess(pid: 6, application: "org.example.App", user: 1)
        let facts: [(Fact, String)] = [
            (.focus([]), "no window has the focus"), (.focus([], among: [5]), "no observer has the focus"),
            (.focus([one, two]), "process 5, process 6 (org.example.App)"), (.logins(Logins()), "no session"),
            (.screenSaver(isActive: true), "a screen saver is active"),
            (.screenSaver(isActive: false), "a screen saver is idle"),
            (.stillness(process: 7, isStill: true), "process 7 was stopped"),
            (.stillness(process: 7, isStill: false), "process 7 was continued"),
        ]
        for (fact, text) in facts { #expect(fact.text == text) }
    }
}
