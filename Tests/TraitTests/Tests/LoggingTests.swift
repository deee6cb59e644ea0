// SPDX-License-Identifier: Apache-2.0

import Logging
import NotifyBus
import NotifyLogging
import TestSupport
import Testing

/// The trait Logging.
@Suite struct LoggingTests {
    /// Keeps what is logged, on one line each.
    private struct Keeper: LogHandler {
        let lines: Recorder<String>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let name = event.metadata?["name"].map { " \($0)" } ?? ""
            lines.append("\(event.level): \(event.message)\(name)")
        }
    }

    private func makeLogger(_ lines: Recorder<String>) -> Logger {
        Logger(label: "test") { _ in Keeper(lines: lines) }
    }

    @Test(arguments: busKinds)
    func `each change of the connection is logged once`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let lines = Recorder<String>()
        let center = NotifyCenter(bus: .address(bus.address), logger: makeLogger(lines))
        let observation = try await center.addObserver(for: "com.example.a") { _ in }
        #expect(await eventually { lines.elements == ["info: NotifyBus is connected"] })
        bus.kill()
        #expect(await eventually { lines.count == 2 })
        // Attempts to connect are no changes.
        try await Task.sleep(for: .milliseconds(300))
        try bus.restart()
        #expect(await eventually { lines.count == 3 })
        #expect(lines.elements[1...] == ["warning: NotifyBus is disconnected", "info: NotifyBus is connected"])
        observation.cancel()
        await center.close()
    }

    @Test(arguments: busKinds)
    func `the first of several signals that are rejected is logged`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let lines = Recorder<String>()
        let center = NotifyCenter(bus: .address(bus.address), logger: makeLogger(lines))
        let observation = try await center.addObserver(for: "com.example.a") { _ in }
        let forger = try RawBusClient(address: bus.address)
        for _ in 0..<3 {
            try forger.emitSignal(
                path: "/org/notifybus",
                interface: "org.notifybus.n.com.example.a",
                member: "Posted",
                signature: "s",
                body: RawBusClient.stringBody("com.example.b")
            )
        }
        try forger.callBus("GetId")
        #expect(await eventually { center.statistics.rejected == 3 })
        let rejection =
            "warning: NotifyBus rejected a signal that was no valid post; the center's statistics count them"
        #expect(await eventually { lines.elements == ["info: NotifyBus is connected", rejection] })
        observation.cancel()
        await center.close()
    }

    @Test func `a name that can't be posted is logged once, without its control characters`() async throws {
        let lines = Recorder<String>()
        let bus = NotifyCenter.Bus.inProcess()
        let center = NotifyCenter(bus: bus, logger: makeLogger(lines))
        bus.disconnect()
        for number in 0..<65_536 { try center.post(NotifyName("com.example.\(number)")) }
        // No more names can wait.
        for _ in 0..<3 {
            #expect(throws: NotifyBusError.self) { try center.post("com.example.line\nfeed") }
            #expect(throws: NotifyBusError.self) { try center.post("com.example.last") }
        }
        let expected = ["com.example.line\\nfeed", "com.example.last"].map {
            "warning: NotifyBus can't post a name \($0)"
        }
        #expect(await eventually { lines.elements.filter { $0.contains("post") } == expected })
    }
}
