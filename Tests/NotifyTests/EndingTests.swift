// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What becomes of posts when the program that has made them ends.
@Suite
struct EndingTests {
    /// Observes the names that a program posts before it ends.
    private struct Listener {
        let center: NotifyCenter
        let heard = Recorder<String>()
        let observation: NotifyCenter.Observation

        init(_ bus: PrivateBus) throws {
            center = NotifyCenter(bus: .address(bus.address))
            let heard = heard
            observation = try center.addObserver(forPrefixes: ["com.example.end."]) { heard.append($0.string) }
        }

        /// How many different names came, once as many as were posted have, or nothing more can come.
        func count() throws -> Int {
            _ = heard.wait(forCount: 1_000, timeout: .patience)
            return Set(heard.elements).count
        }
    }

    @Test(arguments: busKinds, ["return", "handler", "fork"])
    func `every name that a C program has posted when it ends is heard`(kind: BusKind, way: String) throws {
        let library = try CLibrary.shared.get()
        let bus = try PrivateBus(kind)
        let listener = try Listener(bus)
        let result = try library.start("ends-at-once.c", [way], on: bus).wait(timeout: .patience)
        #expect(result.status == 0)
        #expect(try listener.count() == 1_000)
        // None twice: a child has left alone what waited in its parent.
        #expect(listener.heard.count == 1_000)
    }

    @Test(arguments: busKinds, ["end-notify", "end-center", "end-core-foundation"])
    func `every name that a Swift program has posted when it ends is heard`(kind: BusKind, way: String) throws {
        let bus = try PrivateBus(kind)
        let listener = try Listener(bus)
        let result = try run(
            productPath(SwiftProgramTests.builds[0]),
            [way],
            environment: ["NOTIFYBUS_ADDRESS": bus.address, "DBUS_SESSION_BUS_ADDRESS": bus.address]
        )
        #expect(result.status == 0 && result.errorOutput.isEmpty)
        #expect(try listener.count() == 1_000)
    }

    @Test(arguments: busKinds)
    func `a bus that does not read keeps no program from ending`(kind: BusKind) throws {
        let library = try CLibrary.shared.get()
        let bus = try PrivateBus(kind)
        let program = try library.start("ends-at-once.c", ["wait"], on: bus)
        try program.waitForOutput(containing: "posted the first")
        bus.stop()
        defer { bus.resume() }
        try program.writeInput("\n")
        #expect(try program.wait(timeout: .patience).status == 0)
    }
}
