// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// A stopped bridge, with a lifecycle agent.
@Suite(.enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable))
struct StoppedTests {
    @Test(
        "A stopped bridge costs the bus nothing, and sends each name once when it continues",
        arguments: busKinds
    )
    func stopped(kind: BusKind) throws {
        let broker = try Mosquitto()
        let exports = ["last"] + (0..<10).map { "\($0)" }
        let here = try Machine(
            kind,
            ["broker = \(broker.address)", "realm = home"] + exports.map { "export = com.example.\($0)" }
        )
        let agent = try start(productPath("notify-agent"), ["--address", here.bus.address, "-v"], input: .null)
        try agent.waitForErrorOutput(containing: "ready")
        try here.startBridge()
        let there = try Machine(kind, broker, ["import = com.example.*"])
        let heard = try there.hear(prefixes: ["com.example."])
        try here.center.postOnceConnected("com.example.0")
        #expect(heard.wait(forCount: 1))

        let bridge = try here.bridge
        bridge.send(signal: SIGSTOP)
        let stands = waitUntil { processState(bridge.pid) == "T" }
        #expect(stands)
        // While posts arrive, the agent looks for programs that don't read them.
        try here.center.postOnceConnected("com.example.0")
        try agent.waitForErrorOutput(containing: "parked")
        let before = here.bus.residentBytes
        for number in 0..<50_000 {
            try here.center.postOnceConnected(NotifyName("com.example.\(number % 10)"))
            if number % 2_000 == 0 { try here.center.synchronize(timeout: nil) }
        }
        try here.center.synchronize(timeout: nil)
        #expect(here.bus.residentBytes - before < 4_000_000)
        bridge.send(signal: SIGCONT)
        // A last one, posted until it is heard: the bridge may still be resuming.
        let isBack = try waitUntil(timeout: .seconds(120)) {
            try here.center.postOnceConnected("com.example.last")
            return heard.wait(forCount: 12, timeout: .milliseconds(200))
        }
        #expect(isBack)
        let names = heard.elements.dropFirst().filter { $0 != "com.example.last" }
        #expect(Set(names).count == 10)
    }
}
