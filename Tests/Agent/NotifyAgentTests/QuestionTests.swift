// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames
import Synchronization
import TestSupport
import Testing

@testable import NotifyAgent
@testable import NotifyCoordinator

/// Each question that the agent asks, left without an answer once: the part that asks says so, and asks again.
@Suite struct QuestionTests {
    /// How long an answer may take here, in milliseconds.
    static let limit: Int64 = 400

    /// A service, what it answers, and who asks.
    struct Scenario: Sendable, CustomTestStringConvertible {
        let title: String
        let names: [String]
        let answers: [String: AnsweringService.Answer]
        /// Asks by hand, once the source is live.
        var isAsked: @Sendable (any Source) -> Void = { _ in }
        let make: @Sendable (any ServiceBus) -> any Source

        var testDescription: String { title }
    }

    static let scenarios = [
        Scenario(
            title: "logind",
            names: ["org.freedesktop.login1"],
            answers: [
                "GetAll org.freedesktop.login1.Manager": .properties(["PreparingForSleep": ("b", 0)]),
                "GetAll org.freedesktop.login1.Session": .properties(["Active": ("b", 1)]),
                "ListSessions": .sessions("2", user: geteuid()),
                "Inhibit": .number(0, as: "u"),
            ],
            isAsked: { ($0 as? LogindSource)?.delay([.sleep]) },
            make: { LogindSource(user: geteuid(), on: $0) }
        ),
        Scenario(
            title: "UPower",
            names: ["org.freedesktop.UPower"],
            answers: [
                "GetAll org.freedesktop.UPower": .properties(["OnBattery": ("b", 1)]),
                "GetAll org.freedesktop.UPower.Device": .properties(["IsPresent": ("b", 0)]),
            ],
            make: { PowerSource(on: $0) }
        ),
        Scenario(
            title: "power profiles",
            names: ["net.hadess.PowerProfiles"],
            answers: ["GetAll net.hadess.PowerProfiles": .properties([:])],
            make: { ProfileSource(on: $0) }
        ),
        Scenario(
            title: "power profiles by their newer name",
            names: ["org.freedesktop.UPower.PowerProfiles"],
            answers: ["GetAll org.freedesktop.UPower.PowerProfiles": .properties([:])],
            make: { ProfileSource(on: $0) }
        ),
        Scenario(
            title: "the portal",
            names: ["org.freedesktop.portal.Desktop"],
            answers: ["Read": .variant(1, in: 2)],
            make: { AppearanceSource(on: $0) }
        ),
        Scenario(
            title: "GNOME's screen saver",
            names: ["org.gnome.ScreenSaver"],
            answers: ["GetActive": .number(0, as: "b")],
            make: { ScreenSaverSource(on: $0) }
        ),
    ]

    /// A source on a thread of its own, with a private bus in the place of the system's.
    final class Stage: Sendable {
        let thread: EventThread
        let conditions = Recorder<SourceCondition>()
        let reports = Recorder<SourceReport>()

        init(_ bus: PrivateBus, _ make: @escaping @Sendable (any ServiceBus) -> any Source) throws {
            thread = try EventThread(name: "source")
            let address = bus.address
            thread.perform { [conditions, reports] loop in
                let services = MachineServices(on: loop, bus: .address(address), answerLimit: QuestionTests.limit)
                let driver = SourceDriver(make(services), on: loop) { report in
                    if case .condition(let condition) = report {
                        conditions.append(condition)
                    } else {
                        reports.append(report)
                    }
                }
                loop.tenant = driver
                driver.begin()
            }
        }

        func withSource(_ body: @escaping @Sendable (any Source) -> Void) {
            thread.perform { loop in (loop.tenant as? SourceDriver).map { body($0.source) } }
        }

        deinit { thread.stop(waits: true) }
    }

    @Test(arguments: scenarios, busKinds)
    func `a source whose question was not answered names it, and works again`(scenario: Scenario, kind: BusKind) throws
    {
        let bus = try PrivateBus(kind)
        let service = try AnsweringService(bus, scenario.names, scenario.answers)
        defer { service.end() }
        // What it asks when everything is answered.
        do {
            let stage = try Stage(bus, scenario.make)
            try #require(stage.conditions.wait { $0.last == .live })
            stage.withSource(scenario.isAsked)
            let expected = Set(scenario.answers.keys)
            let isAll = waitUntil { Set(service.asked).isSuperset(of: expected) }
            try #require(isAll, "\(service.asked)")
        }
        for question in Set(service.asked).sorted() {
            service.mute(question)
            let stage = try Stage(bus, scenario.make)
            stage.withSource(scenario.isAsked)
            let member = question.split(separator: " ").first ?? ""
            let isNamed = stage.conditions.wait { conditions in
                conditions.contains {
                    if case .off(let reason) = $0 { reason.contains("the question \(member) ") } else { false }
                }
            }
            #expect(isNamed, "\(question): \(stage.conditions.elements)")
            #expect(stage.conditions.wait { $0.last == .live }, "\(question): \(stage.conditions.elements)")
        }
    }

    /// A tenant of a loop, with a connection to a bus and a service manager.
    private final class Manager: BusPeer, LoopTenant {
        let link: BusLink
        let router: ServiceRouter
        var manager: ServiceManager?
        /// A driver that lives here too, and is told that the bus is there.
        var driver: SourceDriver?
        var isReady: () -> Void = {}

        init(_ link: BusLink, on loop: EventLoop) {
            self.link = link
            router = ServiceRouter(link, on: loop)
            link.peer = self
        }

        var keepsConnection: Bool { true }
        func linkIsReady(_ link: BusLink) {
            router.linkIsReady()
            isReady()
        }
        func linkIsLost(_ error: NotifyBusError) {}
        func handle(_ call: BusCall) -> Bool { false }
        func handle(_ signal: BusSignal) { router.handle(signal) }
        func loopHasEnded() { link.end() }
    }

    private static let unit = "a.service"
    private static let managerAnswers: [String: AnsweringService.Answer] = [
        "Subscribe": .empty, "RefUnit": .empty, "UnrefUnit": .empty,
        "LoadUnit": .text("/org/freedesktop/systemd1/unit/a_2eservice", as: "o"),
        "StartUnit": .text("/org/freedesktop/systemd1/job/1", as: "o"),
        "RestartUnit": .text("/org/freedesktop/systemd1/job/1", as: "o"),
        "ListUnitsByPatterns": .unit("notifybus-launch-a-1.service"),
        // It has ended by itself.
        "StopUnit": .init(error: "org.freedesktop.systemd1.NoSuchUnit"),
        "StartTransientUnit": .text("/org/freedesktop/systemd1/job/1", as: "o"),
        "Get org.freedesktop.systemd1.Unit": .variant("inactive"),
    ]

    private static let managerQuestions = [
        "Subscribe", "LoadUnit", "RefUnit", "UnrefUnit", "Get org.freedesktop.systemd1.Unit", "StartUnit",
        "RestartUnit", "ListUnitsByPatterns", "StopUnit", "StartTransientUnit",
    ]

    @Test(arguments: managerQuestions, busKinds)
    func `an entry of launch_d whose question the service manager did not answer names it, and works again`(
        question: String,
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let service = try AnsweringService(bus, ["org.freedesktop.systemd1"], Self.managerAnswers)
        defer { service.end() }
        service.mute(question)
        let isCommand = ["ListUnitsByPatterns", "StopUnit", "StartTransientUnit"].contains(question)
        let (thread, events) = (try EventThread(name: "manager"), Recorder<String>())
        let address = bus.address
        thread.perform { loop in
            let link = BusLink(bus: .address(address), answerLimit: QuestionTests.limit)
            let peer = Manager(link, on: loop)
            let id = LaunchID(1)
            let entry = LaunchEntry(title: "a", action: .command(["true"]))
            var mustLeave = question == "UnrefUnit"
            peer.manager = ServiceManager(link, on: peer.router) { [weak peer] event in
                events.append("\(event)")
                guard let manager = peer?.manager else { return }
                switch event {
                case .manager(nil) where isCommand: manager.attach(id, command: entry.title)
                case .manager(nil): manager.attach(id, QuestionTests.unit)
                case .activity where mustLeave:
                    mustLeave = false
                    manager.detach(id)
                case .activity where isCommand:
                    manager.start(
                        id,
                        number: 7,
                        entry,
                        command: ["true"],
                        first: "com.example.go",
                        restarts: question == "StopUnit"
                    )
                case .activity: manager.start(id, number: 7, QuestionTests.unit, restarts: question == "RestartUnit")
                default: break
                }
            }
            loop.tenant = peer
            loop.add(link)
            link.open()
        }
        defer { thread.stop(waits: true) }
        let member = question.split(separator: " ").first ?? ""
        let reason = "the service manager has not answered the question \(member) within 400 ms"
        #expect(events.wait { $0.contains { $0.contains("manager(") && $0.contains(reason) } }, "\(events.elements)")
        #expect(events.wait { $0.last?.hasPrefix("accepted(") == true }, "\(events.elements)")
        if ["StartUnit", "RestartUnit", "StopUnit", "StartTransientUnit"].contains(question) {
            #expect(events.elements.contains { $0.hasPrefix("ended(") && $0.contains(reason) })
        }
    }

    // MARK: - Desktops

    private func expectRecovery(_ question: String, _ make: @escaping @Sendable () -> any Source) throws {
        let (thread, conditions) = (try EventThread(name: "source"), Recorder<SourceCondition>())
        thread.perform { loop in
            let driver = SourceDriver(make(), on: loop) { report in
                if case .condition(let condition) = report { conditions.append(condition) }
            }
            loop.tenant = driver
            driver.begin()
        }
        defer { thread.stop(waits: true) }
        let isNamed = conditions.wait { conditions in
            conditions.contains {
                if case .off(let reason) = $0 {
                    reason.contains("has not answered the question \(question) ")
                } else {
                    false
                }
            }
        }
        #expect(isNamed, "\(conditions.elements)")
        #expect(conditions.wait { $0.last == .live }, "\(conditions.elements)")
    }

    @Test(arguments: ["SUBSCRIBE", "GET_TREE"])
    func `sway is asked again what it did not answer`(question: String) throws {
        let mute = Mutex(question)
        let desktop = try SilentDesktop(["sway"]) { _, bytes in
            var (reader, reply) = (SwayReader(), [UInt8]())
            for message in (try? reader.take(bytes)) ?? [] {
                let isTree = message.kind == SwayWire.Kind.tree
                let isMuted = mute.withLock { mute in
                    guard mute == (isTree ? "GET_TREE" : "SUBSCRIBE") else { return false }
                    mute = ""
                    return true
                }
                if isMuted { continue }
                let text = isTree ? FakeSway.tree(focused: 1) : #"{"success": true}"#
                reply += SwayWire.message(message.kind, text)
            }
            return reply
        }
        let path = desktop.folder.path + "/sway"
        try expectRecovery(question) { SwaySource(path: path, limit: QuestionTests.limit) }
    }

    @Test func `niri and Hyprland are asked again what they did not answer`() throws {
        let mute = Mutex(true)
        let isMuted: @Sendable () -> Bool = {
            mute.withLock { mute in
                defer { mute = false }
                return mute
            }
        }
        let niri = try SilentDesktop(["niri"]) { _, _ in
            isMuted() ? nil : Array("{\"Ok\":\"Handled\"}\n{\"WindowsChanged\":{\"windows\":[]}}\n".utf8)
        }
        let path = niri.folder.path + "/niri"
        try expectRecovery("EventStream") { NiriSource(path: path, limit: QuestionTests.limit) }
        mute.withLock { $0 = true }
        let hyprland = try SilentDesktop([".socket.sock", ".socket2.sock"]) { name, _ in
            name == ".socket.sock" && !isMuted() ? Array("{}".utf8) : nil
        }
        let folder = hyprland.folder.path
        try expectRecovery("activewindow") { HyprlandSource(folder: folder, limit: QuestionTests.limit) }
    }

    @Test(arguments: busKinds)
    func `KWin's script is asked again if it did not answer`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let service = try AnsweringService(bus, ["org.kde.kglobalaccel"], ["invokeShortcut": .empty])
        defer { service.end() }
        let (thread, conditions) = (try EventThread(name: "source"), Recorder<SourceCondition>())
        let address = bus.address
        thread.perform { loop in
            let link = BusLink(bus: .address(address), answerLimit: QuestionTests.limit)
            let peer = Manager(link, on: loop)
            let source = ShellSource(link, peer.router, asks: true)
            let driver = SourceDriver(source, on: loop) { report in
                if case .condition(let condition) = report { conditions.append(condition) }
            }
            (peer.driver, peer.isReady) = (driver, { [weak source] in source?.ask() })
            loop.tenant = peer
            loop.add(link)
            driver.begin()
            link.open()
        }
        defer { thread.stop(waits: true) }
        #expect(
            waitUntil { service.count("invokeShortcut \(ShellSource.shortcut)") + service.count("invokeShortcut") >= 2 }
        )
        let isNamed = conditions.wait {
            $0.contains(.off("KWin's script has not answered the question 'NotifyBus focus' within 400 ms"))
        }
        #expect(isNamed, "\(conditions.elements)")
    }

    // MARK: - Who is in use

    private final class Tenant: LoopTenant {
        private var watch: UseWatch?

        init(_ watch: UseWatch) { self.watch = watch }

        func loopHasEnded() {
            watch?.follow(nil)
            watch = nil
        }
    }

    /// They are no source and have no line in the status: without an answer, no program counts as in use.
    @Test(arguments: ["ListInhibitors", "GetInhibitors", "GetAppId"], busKinds)
    func `a list of inhibitors that was not told is asked for again`(question: String, kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        var (none, one) = (RawBody(), RawBody())
        none.append(UInt32(0))
        none.align(to: 8)
        // The length of "/a" with its own length and the zero behind it.
        one.append(UInt32(7))
        one.append("/a")
        let service = try AnsweringService(
            bus,
            ["org.freedesktop.login1", "org.gnome.SessionManager"],
            [
                "ListInhibitors": .init(signature: "a(ssssuu)", body: none),
                "GetInhibitors": .init(signature: "ao", body: one),
                "GetAppId": .text("org.example.App", as: "s"),
            ]
        )
        defer { service.end() }
        service.mute(question)
        let (thread, found) = (try EventThread(name: "uses"), Recorder<Set<FocusedProcess>>())
        let address = bus.address
        thread.perform { loop in
            let services = MachineServices(on: loop, bus: .address(address), answerLimit: QuestionTests.limit)
            let environment = SourceEnvironment(
                link: BusLink(bus: .address(address)),
                session: services,
                machine: services,
                servesMachine: false,
                seesFullscreen: false
            )
            let watch = UseWatch(on: loop, environment) { uses, _ in found.append(uses[.inhibitor] ?? []) }
            loop.tenant = Tenant(watch)
            watch.follow(UseQuestion(number: 1, uses: [.inhibitor], terminals: []))
        }
        defer { thread.stop(waits: true) }
        #expect(waitUntil { service.count(question) >= 2 }, "\(service.asked)")
        #expect(found.wait { $0.last?.map(\.application) == ["org.example.App"] }, "\(found.elements)")
    }

    // MARK: - The table is complete

    /// The text of each file of the agent, by its path in Sources/Agent/NotifyAgent.
    private static func sources() throws -> [String: String] {
        let folder = packageFolder + "/Sources/Agent/NotifyAgent"
        let list = try run("find", [folder, "-name", "*.swift"]).output.split(separator: "\n").map(String.init)
        var texts: [String: String] = [:]
        for path in list {
            let file = try #require(fopen(path, "r"))
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1_048_576)
            let count = fread(&bytes, 1, bytes.count, file)
            texts[String(path.dropFirst(folder.count + 1))] = String(decoding: bytes[..<count], as: UTF8.self)
        }
        try #require(texts.count > 50)
        return texts
    }

    private static func files(with text: String) throws -> Set<String> {
        Set(try sources().filter { $0.value.contains(text) }.keys)
    }

    /// A question that is asked in another way fails here; a new way must come with its limit.
    @Test func `there is no way to ask that has no limit`() throws {
        // Calls have one unless they say otherwise, and only observers, which may be stopped, may take as long as they like.
        // An agent that hands over has a clock of its own, by Ping.
        let endless: Set<String> = ["Effects.swift", "HandingOver/HeritageQuestion.swift"]
        #expect(try Self.files(with: "waitsForever") == endless)
        #expect(try Self.files(with: "answerLimit: nil") == [])
        // The bus itself answers at once, except for how long a service takes to start.
        #expect(try Self.files(with: "callBus(\"StartServiceByName\"") == [])
        // Sockets are asked in one place. X servers answer libxcb under the guard of the loop's thread.
        #expect(try Self.files(with: "linux_connect_unix") == ["EventSources/SocketStream.swift"])
        #expect(try Self.files(with: "linux_send(") == ["EventSources/SocketStream.swift"])
        #expect(try Self.files(with: "import CXcb") == ["EventSources/X11Source.swift"])
    }

    /// For each file that asks a service, or at a socket, one of these tests leaves a question without an answer.
    @Test func `everything that asks is in the table`() throws {
        let services = try Self.files(with: "ServiceClient").union(try Self.files(with: "PropertyClient("))
        let tested: Set<String> = [
            "EventSources/LogindSource.swift", "EventSources/PowerSource.swift", "EventSources/ProfileSource.swift",
            "EventSources/AppearanceSource.swift", "EventSources/ScreenSaverSource.swift",
            "EventSources/ShellSource.swift", "EventSources/UseWatch.swift", "Launching/ServiceManager.swift",
        ]
        let asksNothing: Set<String> = [
            // The followers themselves, and the watch that only wants to know whether a name is there.
            "Services/MachineServices.swift", "Services/PropertyClient.swift", "Services/ServiceRouter.swift",
            "Launching/NameWatch.swift",
        ]
        #expect(services == tested.union(asksNothing))
        let sockets: Set<String> = [
            "EventSources/SwaySource.swift", "EventSources/NiriSource.swift", "EventSources/HyprlandSource.swift",
            "EventSources/UseWatch.swift", "EventSources/SocketStream.swift",
        ]
        #expect(try Self.files(with: "SocketStream(") == sockets.subtracting(["EventSources/SocketStream.swift"]))
    }
}
