// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@Suite struct LifecycleAnswerTests {
    /// What no agent should answer to any question.
    private static let nonsense: [[Wire]] = [
        [], [.string("x")], [.int32(-1)], [.bool(true)], [.uint64(1)], [.uint32(1), .uint32(2)],
        [.variant(.uint32(1))], [.array(element: "s", [.string("x")])], [.array(element: "u", [])],
        [.array(element: "{ss}", [.entry("a", .string("b"))])], [.array(element: "a{ss}", [])],
        [.array(element: "v", [.variant(.string("x"))])],
        [(0..<40).reduce(Wire.uint32(1)) { value, _ in .variant(value) }],
    ]

    private static let questions = [["list"], ["list", "--json"], ["status"], ["background", "pid:1"]]

    @Test(arguments: anyBusKind(), questions)
    func `an answer of the wrong type is an error, never a crash`(kind: BusKind, question: [String]) throws {
        let bus = try PrivateBus(kind)
        for answer in Self.nonsense {
            let agent = try FakeAgent(on: bus, replying: answer)
            let result = try run(productPath("notify-lifecycle"), ["--address", bus.address] + question)
            #expect(result.exitedNormally)
            #expect(result.status == 1)
            #expect(result.output == "")
            #expect(result.errorOutput.hasPrefix("notify-lifecycle: the agent"))
            #expect(result.errorOutput.split(separator: "\n").count == 1)
            #expect(agent.calls.count == 1)
            try agent.die()
            try waitForRelease(of: FakeAgent.name, on: bus)
        }
    }

    @Test(arguments: anyBusKind())
    func `a missing or mistyped field in an entry of list is an error that names the field`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let fields = FakeObserver().fields
        for index in fields.indices {
            var missing = fields
            missing.remove(at: index)
            var mistyped = fields
            mistyped[index].1 = .int32(3)
            for wrong in [missing, mistyped] {
                let answer: [Wire] = [.array(element: "a{sv}", [.dictionary(fields), .dictionary(wrong)])]
                let agent = try FakeAgent(on: bus, replying: answer)
                let result = try bus.lifecycle("list")
                #expect(result.status == 1)
                #expect(result.output == "")
                #expect(result.errorOutput.contains("'\(fields[index].0)'"))
                try agent.die()
                try waitForRelease(of: FakeAgent.name, on: bus)
            }
        }
    }

    @Test(
        arguments: anyBusKind(),
        [
            "org.freedesktop.systemd1.UnitMasked", "org.freedesktop.systemd1.NoSuchUnit",
            "org.freedesktop.DBus.Error.Spawn.ChildExited", "org.freedesktop.DBus.Error.TimedOut",
        ]
    )
    func `an agent that can't be started is 69`(kind: BusKind, error: String) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus) { _ in .error(error, "Unit notify-agent.service is masked.") }
        for question in Self.questions {
            let result = try run(productPath("notify-lifecycle"), ["--address", bus.address] + question)
            #expect(result.status == 69)
            #expect(
                result.errorOutput
                    == "notify-lifecycle: the bus can't start the agent: Unit notify-agent.service is masked.\n"
            )
        }
        let hint = try run(
            productPath("notify-lifecycle"),
            ["status"],
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address, "NOTIFYBUS_ADDRESS": nil]
        )
        #expect(hint.errorOutput.hasSuffix("is masked.; see 'systemctl --user status notify-agent'\n"))
        #expect(agent.calls.count == Self.questions.count + 1)
    }

    @Test(arguments: anyBusKind())
    func `two thousand observers are listed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observers = (0..<2_000).map { FakeObserver(name: ":1.\($0)", pid: UInt32(4_000 - $0)) }
        let agent = try FakeAgent(on: bus, replying: FakeObserver.list(observers))
        let result = try bus.lifecycle("list", "-q")
        #expect(result.lines.count == 2_000)
        #expect(result.lines.first?.hasPrefix("2001 ") == true)
        #expect(agent.calls.count == 1)
    }
}

/// Returns when a name has no owner any more.
func waitForRelease(of name: String, on bus: PrivateBus) throws {
    let client = try RawBusClient(address: bus.address)
    let isFree = try waitUntil {
        try client.callBus("NameHasOwner", signature: "s", body: RawBusClient.stringBody(name)).body == [0, 0, 0, 0]
    }
    guard isFree else { throw TestSupportError("\(name) is still taken") }
}
