// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

/// Whether SIGTERM does not end a process by itself.
private func handlesTermination(_ process: pid_t) -> Bool {
    guard let status = try? readFile("/proc/\(process)/status") else { return false }
    return status.split(separator: "\n").contains { line in
        guard ["SigIgn", "SigCgt", "SigBlk"].contains(line.prefix(6)) else { return false }
        let mask = line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) } ?? 0
        return mask >> UInt64(SIGTERM - 1) & 1 == 1
    }
}

/// Whether a process has begun to connect.
private func hasSocket(_ process: pid_t) -> Bool {
    (0..<64).contains { number in
        var target = [CChar](repeating: 0, count: 64)
        return readlink("/proc/\(process)/fd/\(number)", &target, 63) > 0 && strncmp(target, "socket:", 7) == 0
    }
}

/// The programs of the articles, on a real bus.
@Suite struct ProgramTests {

    private func begin(_ name: String, on bus: PrivateBus, _ arguments: [String] = []) throws -> RunningCommand {
        // Otherwise their output into a pipe would wait for more.
        try start(
            "/usr/bin/env",
            ["stdbuf", "-oL", productPath(name)] + arguments,
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address]
        )
    }

    /// Posts until a program has printed a text.
    private func post(_ name: NotifyName, on bus: PrivateBus, until program: RunningCommand, prints text: String) throws
    {
        let poster = bus.makeCenter()
        #expect(
            try waitUntil {
                try poster.post(name)
                return (try? program.waitForOutput(containing: text, timeout: .milliseconds(50))) != nil
            },
            "“\(text)”"
        )
    }

    @Test(arguments: busKinds)
    func `Services: it hears a name, and SIGTERM ends it without an error`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let program = try begin("service-program", on: bus)
        try post("com.example.backup.done", on: bus, until: program, prints: "heard com.example.backup.done\n")
        program.send(signal: SIGTERM)
        #expect(try program.wait().status == 0)
    }

    @Test(arguments: busKinds)
    func `Services: SIGTERM ends it at once while the bus is stopped`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        let program = try begin("service-program", on: bus)
        #expect(waitUntil { handlesTermination(program.pid) && hasSocket(program.pid) })
        let clock = ContinuousClock()
        let asked = clock.now
        program.send(signal: SIGTERM)
        #expect(try program.wait().status == 0)
        #expect(clock.now - asked < .seconds(5))
    }

    @Test(arguments: busKinds)
    func `Configuration: it reloads, and says what is wrong with a file`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        try folder.write(#"{ "port": 1 }"#, to: "config.json")
        let program = try begin("configuration-program", on: bus, [folder.path + "/config.json"])
        try program.waitForOutput(containing: "The port is 1\n")
        try folder.write("{", to: "config.json")
        try post("com.example.config.changed", on: bus, until: program, prints: "The file stays as it was")
        try folder.write(#"{ "port": 2 }"#, to: "config.json")
        try post("com.example.config.changed", on: bus, until: program, prints: "The port is 2\n")
    }

    // As in Package.swift.
    #if compiler(>=6.3)
        @Test(arguments: busKinds)
        func `Foundation: it posts once, and hears another program`(kind: BusKind) async throws {
            let bus = try PrivateBus(kind)
            let heard = Counter()
            let observer = bus.makeCenter()
            let observation = try await observer.addObserver(for: "com.example.settings.changed") { _ in heard.add() }
            let one = try begin("messages-program", on: bus)
            try one.waitForOutput(containing: "changed by the program\n")
            #expect(heard.wait(for: 1))
            let two = try begin("messages-program", on: bus)
            try two.waitForOutput(containing: "changed by the program\n")
            try one.waitForOutput(containing: "changed by the bus\n")
            #expect(heard.wait(for: 2))
            // An echo of the first would have come before this.
            _ = try await observer.next(of: "com.example.mark", timeout: .patience) {
                try observer.post("com.example.mark")
            }
            #expect(heard.value == 2)
            observation.cancel()
        }
    #endif

    @Test(arguments: busKinds)
    func `Logging: it begins before the bus, and logs that the bus comes`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let program = try begin("logging-program", on: bus)
        try program.waitForErrorOutput(containing: "NotifyBus is disconnected")
        try bus.restart()
        try program.waitForErrorOutput(containing: "NotifyBus is connected")
        try post("com.example.backup.done", on: bus, until: program, prints: "heard com.example.backup.done\n")
    }

    @Test(arguments: busKinds)
    func `GRDB: each of two processes sees what the other commits`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let one = try begin("database-program", on: bus, [folder.path + "/notes.sqlite"])
        try one.waitForOutput(containing: "There are 1 notes\n")
        let two = try begin("database-program", on: bus, [folder.path + "/notes.sqlite"])
        try two.waitForOutput(containing: "There are 2 notes\n")
        try one.waitForOutput(containing: "There are 2 notes\n")
    }
}
