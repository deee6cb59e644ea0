// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import TestSupport
import Testing

/// The choice of the bus, and a missing bus.
@Suite struct BusTests {
    @Test(arguments: busKinds, forms)
    func `an observer that found no bus hears posts once there is one`(kind: BusKind, form: String) throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let program = try bus.startProgram(form, "endless-observer")
        try program.waitForOutput(containing: "ready\n")
        let complaint = "CFNotificationCenterAddObserver cannot observe 'a' yet, but keeps trying."
        #expect(try program.waitForErrorOutput(containing: "\n").hasPrefix(complaint))
        try bus.restart()
        let center = NotifyCenter(bus: .address(bus.address))
        let isHeard = try waitUntil {
            try center.postOnceConnected("b")
            return try program.waitForOutput(containing: "").contains("b\n")
        }
        #expect(isHeard)
        // By now the other has been registered as well, or is next.
        let bothAreHeard = try waitUntil {
            try center.postOnceConnected("a")
            return try program.waitForOutput(containing: "").contains("a\n")
        }
        #expect(bothAreHeard)
        program.send(signal: 15)
        // One line for each kind of failure.
        #expect(try program.wait().errorOutput.split(separator: "\n").count == 1)
    }

    @Test(arguments: busKinds)
    func `an observer outlives the bus`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let program = try bus.startProgram("darwin-programs", "endless-observer")
        try program.waitForOutput(containing: "ready\n")
        try bus.restart()
        let center = NotifyCenter(bus: .address(bus.address))
        let isHeard = try waitUntil {
            try center.postOnceConnected("a")
            return try program.waitForOutput(containing: "").contains("a\n")
        }
        #expect(isHeard)
    }

    @Test(arguments: busKinds)
    func `a post without a bus is reported, and one with a bus is sent`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let program = try bus.startProgram("darwin-programs", "post-when-told", input: .pipe)
        try program.writeInput("a\n")
        #expect(try program.waitForOutputLines(2) == ["noBus", "posted a"])
        try bus.restart()
        let center = NotifyCenter(bus: .address(bus.address))
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .everything, timeout: .seconds(25)) {
            heard.appendFromBus($0.string)
        }
        let isHeard = try waitUntil {
            try program.writeInput("b\n")
            return heard.elements.contains("b")
        }
        #expect(isHeard)
        #expect(!heard.elements.contains("a"))
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `NOTIFYBUS_ADDRESS selects another bus`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let choices = [
            ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", "NOTIFYBUS_ADDRESS": bus.address],
            ["DBUS_SYSTEM_BUS_ADDRESS": bus.address, "NOTIFYBUS_ADDRESS": "system"],
            ["DBUS_SESSION_BUS_ADDRESS": bus.address, "NOTIFYBUS_ADDRESS": "session"],
        ]
        for environment in choices {
            let program = try start(productPath("darwin-programs"), ["endless-observer"], environment: environment)
            try program.waitForOutput(containing: "ready\n")
            try NotifyCenter(bus: .address(bus.address)).postOnceConnected("a")
            #expect(try program.waitForOutputLines(2) == ["ready", "a"])
        }
    }

    @Test(arguments: busKinds)
    func `a program that posts and exits at once is heard`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = NotifyCenter(bus: .address(bus.address))
        let heard = Counter()
        let observation = try center.addObserver(for: "a", timeout: .seconds(25)) { _ in heard.add() }
        for count in 1...20 {
            #expect(try bus.lines(of: "darwin-programs", "post-and-exit") == [])
            #expect(heard.wait(for: count))
        }
        observation.cancel()
    }
}
