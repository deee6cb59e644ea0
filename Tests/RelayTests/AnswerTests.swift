// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import TestSupport
import Testing

@testable import NotifyAgent

/// Every call to the relay and about it gets a reply, because a caller would hang without one.
@Suite struct AnswerTests {
    private static let emptyOptions: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0]

    @Test(arguments: busKinds)
    func `a program whose registration the agent has forgotten meanwhile is refused`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let opened = Recorder<String>()
        let serving = Locked<(relay: Relay, center: NotifyCenter)?>(nil)
        let relay = Relay(
            Relay.Outlet(
                opened: { fault in opened.append(fault?.message ?? "") },
                call: { call, _ in
                    guard let (relay, center) = serving.value else { return }
                    let answer: BusAnswer = .success([.string("foreground"), .strings([])])
                    center.perform { link in relay.answer(call, answer, process: nil, on: link) }
                },
                told: { _, _ in },
                lost: { _ in }
            )
        )
        let center = NotifyCenter(bus: .address(bus.address), peer: relay)
        serving.set((relay, center))
        try center.open()
        #expect(opened.wait(forCount: 1) && opened.elements == [""])
        let client = try RawBusClient(address: bus.address)
        let reply = try client.call(
            destination: "org.notifybus.Relay1",
            path: "/org/notifybus/Relay1",
            interface: "org.notifybus.Relay1",
            member: "Register",
            signature: "a{sv}",
            body: AnswerTests.emptyOptions
        )
        #expect(reply.errorName == "org.freedesktop.DBus.Error.Failed")
        center.close()
    }

    @Test(arguments: busKinds)
    func `the agent refuses calls that are meant for the relay, whether there is one or not`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind, opensRelay: false)
        let client = try RawBusClient(address: scene.bus.address)
        for opens in [false, true] {
            if opens { try scene.openRelay() }
            for path in ["/org/notifybus/Agent1", "/org/notifybus/Relay1"] {
                let reply = try client.call(
                    destination: "org.notifybus.Agent1",
                    path: path,
                    interface: "org.notifybus.Relay1",
                    member: "Register",
                    signature: "a{sv}",
                    body: AnswerTests.emptyOptions
                )
                #expect(reply.errorName == "org.freedesktop.DBus.Error.UnknownMethod", "\(path)")
            }
        }
    }
}
