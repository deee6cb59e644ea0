// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames
import Synchronization
import TestSupport
import Testing

@testable import NotifyAgent

/// Each question that the agent asks, left without an answer once: whoever asks says so, and asks again.
@Suite struct QuestionTests {
    /// How long an answer may take here, in milliseconds.
    static let limit: Int64 = 400

    /// A service, what it answers, and who asks.
    struct Scenario: Sendable, CustomTestStringConvertible {
        let title: String
        let names: [String]
        let answers: [String: AnsweringService.Answer]
        /// What is asked by hand, once the source is live.
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

    @Test(arguments: scenarios)
    func `a source whose question was not answered names it, and works again`(scenario: Scenario) throws {
        let bus = try PrivateBus(.daemon)
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

    /// What lives on a loop with a connection to a bus and a service manager.
    private final class Manager: BusPeer, LoopTenant {
        let link: BusLink
        let router: ServiceRouter
        var manager: ServiceManager?
        /// What else lives here, and is told that the bus is there.
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
        "Get org.freedesktop.systemd1.Unit": .variant("inactive"),
    ]

    @Test(arguments: ["Subscribe", "LoadUnit", "RefUnit", "Get org.freedesktop.systemd1.Unit", "StartUnit"])
    func `an entry of launch_d whose question the service manager did not answer names it, and works again`(
        question: String
    ) throws {
        let bus = try PrivateBus(.daemon)
        let service = try AnsweringService(bus, ["org.freedesktop.systemd1"], Self.managerAnswers)
        defer { service.end() }
        service.mute(question)
        let (thread, events) = (try EventThread(name: "manager"), Recorder<String>())
        let address = bus.address
        thread.perform { loop in
            let link = BusLink(bus: .address(address), answerLimit: QuestionTests.limit)
            let peer = Manager(link, on: loop)
            let id = LaunchID(1)
            peer.manager = ServiceManager(link, on: peer.router) { [weak peer] event in
                events.append("\(event)")
                switch event {
                case .manager(nil): peer?.manager?.attach(id, QuestionTests.unit)
                case .activity: peer?.manager?.start(id, number: 7, QuestionTests.unit, restarts: false)
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
        if question == "StartUnit" {
            #expect(events.elements.contains { $0.hasPrefix("ended(") && $0.contains(reason) })
        }
    }

    // MARK: - Desktops

    /// A program that listens at sockets, on threads of its own, and does not answer the first question of a kind.
    final class SilentDesktop: Sendable {
        let folder: TemporaryFolder
        let connections = Counter()

        /// - Parameter answer: what to send for what has come on a connection; nil for nothing.
        init(_ names: [String], _ answer: @escaping @Sendable (_ name: String, _ question: [UInt8]) -> [UInt8]?) throws
        {
            folder = try TemporaryFolder()
            for name in names {
                let listener = try UnixListener(folder.path + "/" + name)
                startThread { [connections] in
                    while let socket = listener.accept() {
                        connections.add()
                        startThread {
                            defer { close(socket) }
                            var bytes = [UInt8](repeating: 0, count: 65_536)
                            while true {
                                let count = recv(socket, &bytes, bytes.count, 0)
                                guard count > 0 else { return }
                                guard let reply = answer(name, Array(bytes[..<count])) else { continue }
                                _ = send(socket, reply, reply.count, Int32(MSG_NOSIGNAL))
                                // Hyprland's ends with the answer.
                                if name == ".socket.sock" { return }
                            }
                        }
                    }
                }
            }
        }
    }

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
            var (rest, reply) = (bytes[...], [UInt8]())
            while let message = try? SwayWire.take(from: &rest) {
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

    @Test func `KWin's script is asked again if it did not answer`() throws {
        let bus = try PrivateBus(.daemon)
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
}

/// A socket that accepts connections.
final class UnixListener: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let descriptor = descriptor
        let isThere = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard isThere, listen(descriptor, 64) == 0 else { throw TestSupportError("Can't listen at \(path).") }
    }

    deinit { close(descriptor) }

    /// - Returns: nil if nobody has connected for long.
    func accept() -> Int32? {
        var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, 60_000) == 1 else { return nil }
        let socket = Glibc.accept(descriptor, nil, nil)
        return socket >= 0 ? socket : nil
    }
}
