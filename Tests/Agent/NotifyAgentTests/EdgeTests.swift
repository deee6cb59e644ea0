// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames
import Synchronization
import TestSupport
import Testing

@testable import NotifyAgent

/// Signals that are missing, come twice, or come from a sender that does not know: the agent looks again.
@Suite struct EdgeTests {
    private static let login = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let manager = "org.freedesktop.login1.Manager"

    static let answers: [String: AnsweringService.Answer] = [
        "GetAll \(manager)": .properties(["PreparingForSleep": ("b", 0)]),
        "GetAll org.freedesktop.login1.Session": .properties(["Active": ("b", 1)]),
        "ListSessions": .sessions("2", user: geteuid()),
    ]

    /// logind, and a source that looks at a clock of the test's.
    private final class Night: Sendable {
        let service: AnsweringService
        let stage: QuestionTests.Stage
        private final class Clock: Sendable { let value = Mutex<Int64>(0) }

        /// How long the machine has slept, in nanoseconds.
        private let clock = Clock()
        private let bus: PrivateBus

        init(_ kind: BusKind) throws {
            bus = try PrivateBus(kind)
            service = try AnsweringService(bus, [login], answers)
            let clock = clock
            stage = try QuestionTests.Stage(bus) {
                LogindSource(user: geteuid(), on: $0, timeAsleep: { clock.value.withLock { $0 } })
            }
            try #require(stage.conditions.wait { $0.last == .live })
        }

        deinit { service.end() }

        func sleep(nanoseconds: Int64) { clock.value.withLock { $0 += nanoseconds } }

        func say(_ member: String, _ value: Bool) throws {
            // Once logind has not said that it is over, it goes on saying that it is about to begin.
            if value { answer(isAboutTo: true) }
            try emit(member, value)
        }

        func answer(isAboutTo: Bool) {
            service.answer("GetAll \(manager)", .properties(["PreparingForSleep": ("b", isAboutTo ? 1 : 0)]))
        }

        func emit(_ member: String, _ value: Bool) throws {
            var body = RawBody()
            body.append(UInt32(value ? 1 : 0))
            try service.emit(path, manager, member, "b", body)
        }

        /// Any other signal.
        func sayAnything() throws {
            var body = RawBody()
            body.append("9")
            body.append("/org/freedesktop/login1/session/_39")
            try service.emit(path, manager, "SessionRemoved", "so", body)
        }

        /// Waits until the source reports this.
        func expect(asleep: Bool, sleeps: UInt64, wakes: UInt64) {
            let isSo = stage.reports.wait { reports in
                guard case .fact(.logins(let logins), _)? = reports.last else { return false }
                return logins.isAsleep == asleep && logins.sleeps == sleeps && logins.wakes == wakes
            }
            #expect(isSo, "\(String(describing: stage.reports.elements.last))")
        }
    }

    private static let hour: Int64 = 3_600_000_000_000

    @Test(arguments: busKinds)
    func `a sleep whose end logind does not report is over when the clock says so, and the next one is reported`(
        kind: BusKind
    ) throws {
        let night = try Night(kind)
        for round: UInt64 in 1...3 {
            try night.say("PrepareForSleep", true)
            night.expect(asleep: true, sleeps: round, wakes: round - 1)
            night.sleep(nanoseconds: Self.hour)
            try night.sayAnything()
            night.expect(asleep: false, sleeps: round, wakes: round)
        }
        // Even if nothing else has been heard in between.
        try night.say("PrepareForSleep", true)
        night.expect(asleep: true, sleeps: 4, wakes: 3)
        night.sleep(nanoseconds: Self.hour)
        try night.say("PrepareForSleep", true)
        night.expect(asleep: true, sleeps: 5, wakes: 4)
        // And its report that comes late says nothing new.
        night.sleep(nanoseconds: Self.hour)
        try night.sayAnything()
        night.expect(asleep: false, sleeps: 5, wakes: 5)
        try night.say("PrepareForSleep", false)
        try night.say("PrepareForSleep", true)
        night.expect(asleep: true, sleeps: 6, wakes: 5)
    }

    @Test(arguments: busKinds)
    func `what elogind says twice counts once`(kind: BusKind) throws {
        let night = try Night(kind)
        for round: UInt64 in 1...3 {
            for _ in 1...2 { try night.say("PrepareForSleep", true) }
            // Once it asks for what came behind, it has heard both.
            let before = night.service.count("ListSessions")
            try night.sayAnything()
            try #require(waitUntil { night.service.count("ListSessions") > before })
            night.expect(asleep: true, sleeps: round, wakes: round - 1)
            night.sleep(nanoseconds: Self.hour)
            for _ in 1...2 { try night.say("PrepareForSleep", false) }
            night.expect(asleep: false, sleeps: round, wakes: round)
        }
    }

    @Test(arguments: busKinds)
    func `what elogind says twice counts once, too, if the second is read only after the wake`(kind: BusKind) throws {
        let night = try Night(kind)
        for round: UInt64 in 1...3 {
            try night.say("PrepareForSleep", true)
            night.expect(asleep: true, sleeps: round, wakes: round - 1)
            night.sleep(nanoseconds: Self.hour)
            night.answer(isAboutTo: false)
            try night.emit("PrepareForSleep", true)
            for _ in 1...2 { try night.emit("PrepareForSleep", false) }
            // Once it asks for what came behind, it has heard all, and has the answer about the first.
            let before = night.service.count("ListSessions")
            try night.sayAnything()
            try #require(waitUntil { night.service.count("ListSessions") > before })
            let reports = night.stage.reports.count
            try night.sayAnything()
            try #require(night.stage.reports.wait(forCount: reports + 1))
            night.expect(asleep: false, sleeps: round, wakes: round)
        }
    }

    @Test(arguments: busKinds)
    func `a lock that logind refuses is asked for again until it is there`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let service = try AnsweringService(
            bus,
            [Self.login],
            Self.answers.merging(["Inhibit sleep": .init(error: "org.freedesktop.DBus.Error.Failed")]) { $1 }
        )
        defer { service.end() }
        let stage = try QuestionTests.Stage(bus) { LogindSource(user: geteuid(), on: $0) }
        stage.withSource { ($0 as? LogindSource)?.delay([.sleep]) }
        #expect(waitUntil { service.count("Inhibit sleep") >= 3 })
        // The source's other reports stay.
        #expect(stage.conditions.elements.last == .live)
    }

    @Test(arguments: busKinds)
    func `dark mode is what the portal answers, whatever a part of it says that is not responsible`(kind: BusKind)
        throws
    {
        let bus = try PrivateBus(kind)
        let service = try AnsweringService(bus, ["org.freedesktop.portal.Desktop"], ["Read": .variant(2, in: 2)])
        service.answer("Read org.freedesktop.appearance", .variant(2, in: 2))
        defer { service.end() }
        let stage = try QuestionTests.Stage(bus) { AppearanceSource(on: $0) }
        try #require(stage.conditions.wait { $0.last == .live })
        func say(_ scheme: UInt32) throws {
            var body = RawBody()
            body.append("org.freedesktop.appearance")
            body.append("color-scheme")
            body.append(signature: "u")
            body.append(scheme)
            let path = "/org/freedesktop/portal/desktop"
            try service.emit(path, "org.freedesktop.portal.Settings", "SettingChanged", "ssv", body)
        }
        let (name, asked): (NotifyName, String) = (
            "org.notifybus.session.appearance", "Read org.freedesktop.appearance"
        )
        let before = service.count(asked)
        try say(1)
        try #require(waitUntil { service.count(asked) > before })
        service.answer(asked, .variant(1, in: 2))
        try say(2)
        let isPosted = stage.reports.wait { reports in
            reports.contains {
                if case .found(let changes) = $0 { changes == [EventChange(name, state: 1)] } else { false }
            }
        }
        #expect(isPosted)
        let posts = stage.reports.elements.flatMap { report -> [EventChange] in
            if case .found(let changes) = report { changes.filter(\.isPosted) } else { [] }
        }
        #expect(posts == [EventChange(name, state: 1)])
    }

    @Test(arguments: busKinds)
    func `a battery of which UPower knows nothing is none, and not one that is empty`(kind: BusKind) throws {
        func reports(_ display: AnsweringService.Answer) throws -> [EventChange] {
            let bus = try PrivateBus(kind)
            let answers = [
                "GetAll org.freedesktop.UPower": AnsweringService.Answer.properties(["OnBattery": ("b", 0)]),
                "GetAll org.freedesktop.UPower.Device": display,
            ]
            let service = try AnsweringService(bus, ["org.freedesktop.UPower"], answers)
            defer { service.end() }
            let stage = try QuestionTests.Stage(bus) { PowerSource(on: $0) }
            try #require(stage.conditions.wait { $0.last == .live })
            return stage.reports.elements.flatMap { report -> [EventChange] in
                if case .found(let changes) = report { changes } else { [] }
            }
        }
        let unknown = AnsweringService.Answer.properties([
            "IsPresent": ("b", 1), "Type": ("u", 2), "State": ("u", 0), "Percentage": ("d", 0),
        ])
        let empty = AnsweringService.Answer.properties([
            "IsPresent": ("b", 1), "Type": ("u", 2), "State": ("u", 2), "Percentage": ("d", 0),
        ])
        let none = try reports(.properties(["IsPresent": ("b", 0)]))
        #expect(try reports(unknown) == none)
        #expect(try reports(empty) != none)
    }
}
