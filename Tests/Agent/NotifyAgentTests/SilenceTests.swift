// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization
import TestSupport
import Testing

@testable import NotifyAgent
@testable import NotifyCoordinator

/// Questions by other ways than a service's: to an X server, to the sound server, and to the bus that starts a program. And
/// what people are told.
@Suite struct SilenceTests {
    // MARK: - X

    @Test(.enabled(if: XServer.isInstalled, "Xvfb is not installed"))
    func `an X server that does not answer is named, and asked again`() throws {
        let server = try XServer()
        let relay = try XRelay(server)
        let manager = try XClient(server)
        try manager.setActiveWindow([0])
        relay.muteNextConnection()
        let (thread, conditions) = (try EventThread(name: "agent"), Recorder<SourceCondition>())
        let display = ":\(relay.number)"
        thread.perform { loop in
            let source = X11Source.onThread(display: display, seesFullscreen: false, limit: QuestionTests.limit)
            let driver = SourceDriver(source, on: loop) { report in
                if case .condition(let condition) = report { conditions.append(condition) }
            }
            loop.tenant = driver
            driver.begin()
        }
        defer { thread.stop(waits: true) }
        func isNamed(_ question: String) -> Bool {
            let reason = "the X server \(display) has not answered the question \(question) within 400 ms"
            return conditions.wait { $0.contains(.off(reason)) }
        }
        #expect(isNamed("connection setup"), "\(conditions.elements)")
        // libxcb can't be told to give up; whatever ends that connection does.
        relay.endConnections()
        #expect(conditions.wait { $0.last == .live }, "\(conditions.elements)")
        for _ in 1...2 {
            relay.muteNextQuestion()
            try manager.setActiveWindow([try manager.makeWindow()])
            #expect(isNamed("_NET_ACTIVE_WINDOW"), "\(conditions.elements)")
            #expect(conditions.wait { $0.last == .live }, "\(conditions.elements)")
        }
    }

    // MARK: - The sound server

    /// How often a client asks who plays.
    private static func questions(in bytes: [UInt8]) -> Int {
        var (rest, count) = (bytes[...], 0)
        while rest.count >= 30 {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            // The command is a number behind the header.
            if rest[rest.startIndex + 24] == 30 { count += 1 }
            rest = rest.dropFirst(20 + length)
        }
        return count
    }

    private static func answer(_ player: pid_t) -> [UInt8] {
        var body: [UInt8] = []
        // A reply, and the number of our question.
        for number: UInt32 in [2, PulseWire.Question.streams] {
            body += [UInt8(ascii: "L")] + DesktopWireTests.plain(number)
        }
        body += DesktopWireTests.stream(pid: "\(player)", isPaused: false)
        return [UInt32(body.count), .max, 0, 0, 0].flatMap(DesktopWireTests.plain) + body
    }

    private final class Watcher: LoopTenant {
        var watch: UseWatch?

        init(_ watch: UseWatch) { self.watch = watch }

        func loopHasEnded() {
            watch?.follow(nil)
            watch = nil
        }
    }

    @Test func `the connection to a sound server that does not answer is made again`() throws {
        let isMute = Mutex(true)
        let player = getpid()
        let desktop = try SilentDesktop(["sound"]) { _, bytes in
            let count = Self.questions(in: bytes)
            let isMute = isMute.withLock { isMute in
                defer { if count > 0 { isMute = false } }
                return isMute
            }
            return isMute || count == 0 ? nil : Array(repeatElement(Self.answer(player), count: count).joined())
        }
        let (thread, found) = (try EventThread(name: "uses"), Recorder<Set<Int32>>())
        let path = desktop.folder.path + "/sound"
        thread.perform { loop in
            let nowhere = NotifyCenter.Bus.address("unix:path=/nonexistent/bus")
            let services = MachineServices(on: loop, bus: nowhere)
            let environment = SourceEnvironment(
                link: BusLink(bus: nowhere),
                session: services,
                machine: services,
                servesMachine: false,
                seesFullscreen: false,
                variables: ["PULSE_SERVER": path]
            )
            let watch = UseWatch(on: loop, environment, soundLimit: QuestionTests.limit) { uses, _ in
                found.append(Set((uses[.audio] ?? []).map(\.pid)))
            }
            loop.tenant = Watcher(watch)
        }
        defer { thread.stop(waits: true) }
        // Each question has an answer after a second at most: while the server is silent, that no program plays.
        var number: UInt64 = 0
        let isFound = waitUntil(timeout: .seconds(20)) {
            number += 1
            let question = UseQuestion(number: number, uses: [.audio], terminals: [])
            let before = found.count
            thread.perform { loop in (loop.tenant as? Watcher)?.watch?.follow(question) }
            return found.wait(forCount: before + 1) && found.elements.last == [player]
        }
        #expect(isFound, "\(found.elements)")
        #expect(found.elements.first == [])
    }

    // MARK: - The bus that starts a program

    /// A bus that never says how starting `com.example.Silent` has ended: the program does not own the name, and a service
    /// manager that dbus-broker may ask does not answer.
    private final class SilentStart {
        let bus: PrivateBus
        private let folder = try? TemporaryFolder()
        private let manager: RawBusClient

        init(_ kind: BusKind) throws {
            let services = try #require(folder).path
            try folder?.write(
                "[D-BUS Service]\nName=com.example.Silent\nExec=/bin/sleep 60\n",
                to: "com.example.Silent.service"
            )
            bus = try PrivateBus(
                kind,
                limits: ["service_start_timeout": 600_000],
                policy: PrivateBus.openPolicy + "<servicedir>\(services)</servicedir>"
            )
            manager = try RawBusClient(address: bus.address)
            var body = RawBody()
            body.append("org.freedesktop.systemd1")
            body.append(UInt32(4))
            try manager.callBus("RequestName", signature: "su", body: body.bytes)
        }
    }

    private final class Starter: BusPeer, LoopTenant {
        let link: BusLink
        let answered: (BusAnswer) -> Void

        init(_ link: BusLink, answered: @escaping (BusAnswer) -> Void) {
            (self.link, self.answered) = (link, answered)
            link.peer = self
        }

        var keepsConnection: Bool { true }
        func linkIsReady(_ link: BusLink) { link.startService("com.example.Silent", then: answered) }
        func linkIsLost(_ error: NotifyBusError) {}
        func handle(_ call: BusCall) -> Bool { false }
        func handle(_ signal: BusSignal) {}
        func loopHasEnded() { link.end() }
    }

    @Test(arguments: busKinds)
    func `starting a program by the bus ends in time`(kind: BusKind) throws {
        let start = try SilentStart(kind)
        let (thread, answers) = (try EventThread(name: "starter"), Recorder<String>())
        let address = start.bus.address
        thread.perform { loop in
            let link = BusLink(bus: .address(address), answerLimit: QuestionTests.limit)
            loop.tenant = Starter(link) { answer in
                switch answer {
                case .success: answers.append("success")
                case .failure(let fault): answers.append(fault.name)
                }
            }
            loop.add(link)
            link.open()
        }
        defer { thread.stop(waits: true) }
        // dbus-broker's own limit is 25 s.
        #expect(answers.wait(forCount: 1, timeout: .seconds(20)))
        #expect(answers.elements.first == "org.notifybus.Error.NoAnswer", "\(answers.elements)")
        withExtendedLifetime(start) {}
    }

    // MARK: - What people are told

    /// With the usual limit: this takes as long.
    @Test(arguments: busKinds)
    func `status names the question that was not answered, and an entry that the bus does not start is due again`(
        kind: BusKind
    ) throws {
        let machine = try PrivateBus(kind)
        let logind = try AnsweringService(machine, ["org.freedesktop.login1"], EdgeTests.answers)
        defer { logind.end() }
        logind.mute("ListSessions", always: true)
        let start = try SilentStart(kind)
        let folder = try TemporaryFolder()
        try run("mkdir", ["-p", "\(folder.path)/notifybus/launch.d"])
        let entry = "name = com.example.go\nactivate = com.example.Silent\nfrom = anyone\n"
        try folder.write(entry, to: "notifybus/launch.d/silent.conf")
        let agent = try TestSupport.start(
            productPath("notify-agent"),
            ["--address", start.bus.address],
            environment: withoutDesktop.merging([
                "DBUS_SYSTEM_BUS_ADDRESS": machine.address, "XDG_CONFIG_HOME": folder.path,
            ]) { $1 }
        )
        try agent.waitForErrorOutput(containing: "ready")
        func lifecycle(_ arguments: String...) throws -> String {
            let result = try run(productPath("notify-lifecycle"), ["--address", start.bus.address] + arguments)
            return result.output.split(separator: " ").joined(separator: " ")
        }
        func isEntry(_ state: String) throws -> Bool {
            let lines = try lifecycle("launches", "-q").split(separator: "\n")
            return lines.contains { $0.hasPrefix("silent ") && $0.contains(" \(state) ") }
        }
        // Without an observer, the agent would not ask logind.
        let center = NotifyCenter(bus: .address(start.bus.address))
        let observation = try center.addObserver(for: "org.notifybus.session.lock", timeout: .seconds(25)) { _ in }
        // The bus has routed what it has read when it answers.
        let poster = try RawBusClient(address: start.bus.address)
        func post() throws {
            try poster.post("com.example.go")
            try poster.callBus("GetId")
        }
        try post()
        #expect(try waitUntil { try isEntry("starting") })
        var last = ""
        let isNamed = try waitUntil {
            last = try lifecycle("status")
            return last.contains("systemd-logind has not answered the question ListSessions within 25 s")
        }
        #expect(isNamed, "\(last)")
        #expect(try waitUntil { try isEntry("idle") })
        // Posts from now on do not wait behind the start that had no end. A dbus-broker may have yet to give that up, as it
        // does after 25 seconds, too: then the next start ends with it.
        let startsAgain = try waitUntil {
            try post()
            return try isEntry("starting")
        }
        #expect(startsAgain)
        observation.cancel()
        agent.send(signal: SIGTERM)
        _ = try agent.wait(timeout: .patience)
    }
}

/// Stands between an X server and its clients, and can keep its answers back.
private final class XRelay: Sendable {
    private struct State {
        var mutesConnection = false
        var mutesQuestion = false
        var sockets: [UnixStream] = []
    }

    private final class Talk: Sendable {
        let client: UnixStream
        let server: UnixStream
        let isMute: Mutex<Bool>

        init(_ client: UnixStream, _ server: UnixStream, isMute: Bool) {
            (self.client, self.server) = (client, server)
            self.isMute = Mutex(isMute)
        }

        /// Passes on what comes from one side until it ends; then both do.
        func pass(from source: UnixStream, to target: UnixStream, _ passes: () -> Bool) {
            var bytes = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = recv(source.descriptor, &bytes, bytes.count, 0)
                guard count > 0 else { break }
                guard passes() else { continue }
                try? target.send(Array(bytes[..<count]))
            }
            for stream in [client, server] { shutdown(stream.descriptor, Int32(SHUT_RDWR)) }
        }
    }

    /// The number of its display.
    let number = Int.random(in: 50_000..<60_000)
    private let state = Mutex(State())
    private var path: String { "/tmp/.X11-unix/X\(number)" }

    init(_ server: XServer) throws {
        let listener = try UnixListener(path)
        let target = "/tmp/.X11-unix/X\(server.number)"
        startThread { [weak self] in
            while let socket = listener.accept() {
                guard let server = try? UnixStream(path: target), let self else { return }
                let client = UnixStream(descriptor: socket)
                let isMute = state.withLock { state in
                    defer { state.mutesConnection = false }
                    state.sockets += [client, server]
                    return state.mutesConnection
                }
                let talk = Talk(client, server, isMute: isMute)
                startThread { talk.pass(from: server, to: client) { talk.isMute.withLock { !$0 } } }
                startThread { [weak self] in
                    talk.pass(from: client, to: server) {
                        if self?.takeMute() == true { talk.isMute.withLock { $0 = true } }
                        return true
                    }
                }
            }
        }
    }

    deinit {
        endConnections()
        unlink(path)
    }

    private func takeMute() -> Bool {
        state.withLock { state in
            defer { state.mutesQuestion = false }
            return state.mutesQuestion
        }
    }

    /// Keeps back everything on the next connection.
    func muteNextConnection() { state.withLock { $0.mutesConnection = true } }

    /// Keeps back the answer to what a client asks next, and everything behind it.
    func muteNextQuestion() { state.withLock { $0.mutesQuestion = true } }

    func endConnections() {
        let sockets = state.withLock { state in
            defer { state.sockets = [] }
            return state.sockets
        }
        for socket in sockets { shutdown(socket.descriptor, Int32(SHUT_RDWR)) }
    }
}
