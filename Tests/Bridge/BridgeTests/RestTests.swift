// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What a bridge costs when nothing crosses.
@Suite(.enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable))
struct RestTests {
    /// The bridge wakes up twice: to send a ping when it is due, and to read the answer. With another timer, or with
    /// polling, it would be more.
    @Test("A bridge at rest wakes up only for its keepalive, and with that at 0 not at all")
    func rest() throws {
        let broker = try Mosquitto()
        let idle = try Machine(.daemon, broker, ["export = com.example.*", "keepalive = 0"])
        let machine = try Machine(
            .daemon,
            broker,
            ["export = com.example.*", "import = com.example.*", "keepalive = 5s"]
        )
        let heard = try machine.hear(["com.example.a"])
        try broker.publish("nb1/home/com/example/a")
        #expect(heard.wait(forCount: 1))
        let (bridge, other) = (try machine.bridge.pid, try idle.bridge.pid)
        // Between pings it sleeps, once its earlier work is done.
        let sleeps = try waitUntil {
            let (woken, pings) = (wakeUps(of: other), try broker.pings)
            return try waitUntil { try broker.pings > pings } && wakeUps(of: other) == woken
        }
        #expect(sleeps)
        let (woken, before) = (wakeUps(of: bridge), try broker.pings)
        #expect(try waitUntil { try broker.pings >= before + 3 })
        let (count, pings) = (wakeUps(of: bridge) - woken, try broker.pings - before)
        #expect(count <= 2 * (pings + 1), "\(count) times, with \(pings) pings")
    }
}
