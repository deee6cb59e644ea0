// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What happens to posts when their program exits.
@Suite
struct EndingTests {
    /// Observes the names that a program posts before it exits.
    private struct Listener {
        let center: NotifyCenter
        let heard = Recorder<String>()
        let observation: NotifyCenter.Observation

        init(_ bus: PrivateBus) throws {
            center = NotifyCenter(bus: .address(bus.address))
            let heard = heard
            observation = try center.addObserver(matching: .prefix("com.example.end."), timeout: .seconds(25)) {
                heard.append($0.string)
            }
        }
    }

    /// The names that arrive of a program which posts 1,000 before it exits.
    ///
    /// A bus that is too busy to take them within a second gets another chance.
    private func names(on kind: BusKind, ofProgram run: (PrivateBus) throws -> Void) throws -> [String] {
        var names: [String] = []
        _ = try waitUntil {
            let bus = try PrivateBus(kind)
            let listener = try Listener(bus)
            let start = ContinuousClock.now
            try run(bus)
            let mayBeLate = ContinuousClock.now - start >= .seconds(1)
            let areAll = listener.heard.wait(forCount: 1_000, timeout: mayBeLate ? .seconds(10) : .patience)
            names = listener.heard.elements
            return areAll || !mayBeLate
        }
        return names
    }

    @Test(arguments: anyBusKind(), ["return", "handler", "fork"])
    func `every name that a C program posted before it exits is heard`(kind: BusKind, way: String) throws {
        let library = try CLibrary.shared.get()
        let names = try names(on: kind) { bus in
            let result = try library.start("ends-at-once.c", [way], on: bus).wait(timeout: .patience)
            #expect(result.status == 0)
        }
        #expect(Set(names).count == 1_000)
        // None twice, because the child didn't touch its parent's queue.
        #expect(names.count == 1_000)
    }

    @Test(arguments: anyBusKind(), ["end-notify", "end-center", "end-core-foundation"])
    func `every name that a Swift program posted before it exits is heard`(kind: BusKind, way: String) throws {
        let names = try names(on: kind) { bus in
            let result = try run(
                productPath(SwiftProgramTests.builds[0]),
                [way],
                environment: ["NOTIFYBUS_ADDRESS": bus.address, "DBUS_SESSION_BUS_ADDRESS": bus.address]
            )
            #expect(result.status == 0 && result.errorOutput.isEmpty)
        }
        #expect(Set(names).count == 1_000)
    }

    @Test(arguments: anyBusKind())
    func `a bus that does not read keeps no program from exiting`(kind: BusKind) throws {
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
