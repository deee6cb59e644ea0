// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import TestSupport
import Testing

@Suite struct PowerTests {
    private static let hasUPower = MockMachine.isInstalled(.upower)

    private func makeScene(_ kind: BusKind, _ machine: MockMachine) throws -> EventScene {
        try EventScene(kind, environment: ["DBUS_SYSTEM_BUS_ADDRESS": machine.bus.address])
    }

    @Test(.enabled(if: hasUPower, "UPower or umockdev is not installed"), arguments: anyBusKind())
    func `one percent less is one post with the exact number; charging alone is none`(kind: BusKind) throws {
        let machine = try MockMachine(.upower)
        let scene = try makeScene(kind, machine)
        let percent = try scene.observe(PowerState.percent)
        let source = try scene.observe(PowerState.source)
        let any = try scene.observe(PowerState.any)
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 57 | 1 << 19 })
        try machine.set("BAT0", ["energy_now": "33600000", "capacity": "56"])
        #expect(percent.heard.wait(for: 1))
        #expect(try scene.state(of: PowerState.percent) == 56 | 1 << 19)
        #expect(any.heard.wait(for: 1))
        try machine.set("AC", ["online": "1"])
        #expect(source.heard.wait(for: 1) && percent.heard.wait(for: 2))
        let powered: UInt64 = 1 << 16 | 1 << 19
        #expect(try scene.state(of: PowerState.percent) == 56 | powered)
        #expect(try scene.state(of: PowerState.time) >> 56 == 1)
        try machine.set("BAT0", ["status": "Charging"])
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 56 | powered | 1 << 17 })
        try machine.set("BAT0", ["status": "Full"])
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 56 | powered | 1 << 21 })
        try machine.set("BAT0", ["energy_now": "34800000", "capacity": "58"])
        #expect(percent.heard.wait(for: 3))
        // Had these been posts, they would have come before the last one.
        #expect(percent.heard.value == 3 && source.heard.value == 1)
        for each in [percent.observation, source.observation, any.observation] { each.cancel() }
    }

    @Test(arguments: anyBusKind())
    func `a service that fails to answer once is asked again`(kind: BusKind) throws {
        let machine = try PrivateBus(.daemon)
        let upower = try RawBusClient(address: machine.address)
        var body = RawBody()
        body.append("org.freedesktop.UPower")
        body.append(UInt32(0))
        try #require(try upower.callBus("RequestName", signature: "su", body: body.bytes).uint32 == 1)
        let scene = try EventScene(kind, environment: ["DBUS_SYSTEM_BUS_ADDRESS": machine.address])
        let percent = try scene.observe(PowerState.percent)
        // Of each round's two questions.
        for number in 0..<4 {
            var call = try upower.readMessage()
            while call.member != "GetAll" { call = try upower.readMessage() }
            var answer = RawMessage(number == 1 ? .error : .reply)
            (answer.destination, answer.replySerial) = (call.sender, call.serial)
            if number == 1 {
                answer.errorName = "org.freedesktop.DBus.Error.NoReply"
            } else {
                (answer.signature, answer.body) = ("a{sv}", [UInt8](repeating: 0, count: 8))
            }
            try upower.send(answer)
        }
        try scene.waitUntilLive(PowerState.percent)
        percent.observation.cancel()
    }

    @Test(.enabled(if: hasUPower, "UPower or umockdev is not installed"), arguments: anyBusKind())
    func `while UPower is away the states are 0; once it is back only what has changed is posted`(kind: BusKind)
        throws
    {
        let machine = try MockMachine(.upower)
        let scene = try makeScene(kind, machine)
        let percent = try scene.observe(PowerState.percent)
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 57 | 1 << 19 })
        try machine.kill()
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 0 })
        #expect(try scene.status().contains("UPower"))
        try machine.restart()
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 57 | 1 << 19 })
        try machine.kill()
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 0 })
        try machine.set("BAT0", ["energy_now": "12000000", "capacity": "20"])
        try machine.restart()
        #expect(percent.heard.wait(for: 1))
        #expect(try scene.state(of: PowerState.percent) == 20 | 1 << 19)
        // The first return would have been heard before this.
        #expect(percent.heard.value == 1)
        percent.observation.cancel()
    }

    @Test(.enabled(if: hasUPower, "UPower or umockdev is not installed"), arguments: anyBusKind())
    func `the bus starts UPower once its names are wanted, and nothing waits for it`(kind: BusKind)
        throws
    {
        let machine = try MockMachine(.upower, isActivated: true)
        let scene = try makeScene(kind, machine)
        let clock = try scene.observe("com.apple.system.clock_set")
        try scene.waitUntilLive("com.apple.system.clock_set")
        #expect(try !machine.isRunning)
        let percent = try scene.observe(PowerState.percent)
        machine.waitForStart()
        #expect(try scene.state(of: PowerState.percent) == 0)
        #expect(try !machine.isRunning)
        try machine.letStart()
        #expect(try waitUntil { try scene.state(of: PowerState.percent) == 57 | 1 << 19 })
        #expect(try machine.isRunning)
        for each in [clock.observation, percent.observation] { each.cancel() }
    }

    @Test(.enabled(if: MockMachine.isInstalled(.profiles), "power-profiles-daemon or umockdev is not installed"))
    func `power saving and heat are one post for each change`() throws {
        let machine = try MockMachine(.profiles)
        let scene = try makeScene(.daemon, machine)
        let (mode, heat): (NotifyName, NotifyName) = (
            "com.apple.system.lowpowermode", "com.apple.system.thermalpressurelevel"
        )
        let saves = try scene.observe(mode)
        let hot = try scene.observe(heat)
        try scene.waitUntilLive(mode)
        #expect(try scene.state(of: mode) == 0 && scene.state(of: heat) == 0)
        try machine.choose(profile: "power-saver")
        #expect(saves.heard.wait(for: 1))
        #expect(try scene.state(of: mode) == 1)
        try machine.choose(profile: "performance")
        #expect(saves.heard.wait(for: 2))
        try machine.setHot(true)
        #expect(hot.heard.wait(for: 1))
        #expect(try scene.state(of: mode) == 0 && scene.state(of: heat) == 2)
        try machine.setHot(false)
        #expect(hot.heard.wait(for: 2))
        #expect(saves.heard.value == 2 && hot.heard.value == 2)
        for each in [saves.observation, hot.observation] { each.cancel() }
    }

    @Test(.enabled(if: hasUPower, "UPower or umockdev is not installed"))
    func `the agent has no connection to the system bus while no observer needs it`() throws {
        let machine = try MockMachine(.upower)
        // An agent that follows logind's sessions for its observers is connected anyway.
        let scene = try EventScene(
            .daemon,
            configuration: "ignore = logind\n",
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": machine.bus.address]
        )
        let other = try scene.observe("com.apple.system.timezone")
        let before = try machine.connections()
        let percent = try scene.observe(PowerState.percent)
        let saves = try scene.observe("com.apple.system.lowpowermode")
        #expect(try waitUntil { try scene.state(of: PowerState.percent) != 0 })
        // One connection serves both.
        #expect(try machine.connections() == before + 1)
        for each in [percent.observation, saves.observation] { each.cancel() }
        #expect(try waitUntil { try machine.connections() == before })
        other.observation.cancel()
    }

    @Test func `each fact has its bit, and only relevant changes are posted`() {
        var state = PowerState()
        #expect(state.percentBits == 1 << 16 && state.timeBits == 1 << 16 | 1 << 19 | 1 << 56)
        (state.kind, state.percentage, state.isOnBattery, state.timeToEmpty) = (.battery, 99.6, true, 7_199)
        #expect(state.percentBits == 100 | 1 << 19)
        #expect(state.timeBits == 119 | 1 << 19 | 1 << 22 | 2 << 56)
        var next = state
        (next.isCharging, next.warning) = (true, 4)
        func posts(_ new: PowerState, _ old: PowerState) -> [NotifyName] {
            new.changes(from: old, isNew: false).filter(\.isPosted).map(\.name)
        }
        #expect(next.percentBits == 100 | 1 << 17 | 1 << 19 | 1 << 24)
        #expect(posts(next, state) == [PowerState.low, PowerState.critical, PowerState.time, PowerState.any])
        state = next
        next.isLidClosed = true
        #expect(posts(next, state) == [PowerState.lid])
        next.isLidClosed = false
        (next.percentage, next.timeToEmpty, next.kind) = (.nan, -5, .ups)
        #expect(next.percentBits == 1 << 17 | 1 << 19 | 1 << 24)
        #expect(next.timeBits == 1 << 17 | 1 << 18 | 1 << 19 | 1 << 23 | 3 << 56)
        // Nothing is posted unless it is known to have changed.
        #expect(next.changes(from: nil, isNew: true).allSatisfy { !$0.isPosted })
    }
}
