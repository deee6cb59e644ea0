// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import TestSupport
import Testing

/// dbus-daemon ends the connection that sends a message that is too large for it. No post makes dbus-broker do so:
/// its limit is the protocol's.
@Suite struct RefusedPostTests {
    @Test(.enabled(if: busKinds.contains(.daemon), "\(BusKind.daemon.unavailable ?? "")"))
    func `posts for which the bus ends the connection do not stop those behind them`() throws {
        let bus = try PrivateBus(.daemon, limits: ["max_message_size": 500])
        let (center, observing) = (bus.makeCenter(), bus.makeCenter())
        let heard = Recorder<NotifyName>()
        let observation = try observing.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            heard.append($0)
        }
        let large = try NotifyName("com.example." + String(repeating: "x", count: 499))
        try center.postOnceConnected("com.example.first")
        try #require(heard.wait(forCount: 1))
        // Posts that the socket has no room for are queued.
        bus.stop()
        try center.postOnceConnected(large)
        for number in 0..<20_000 {
            try center.postOnceConnected(NotifyName("com.example.n\(number)"))
            if number % 5_000 == 0 { try center.postOnceConnected(large) }
        }
        bus.resume()
        #expect(heard.wait { $0.last == "com.example.n19999" })
        try center.postOnceConnected("com.example.end")
        #expect(heard.wait { $0.last == "com.example.end" })
        #expect(!heard.elements.contains(large))
        observation.cancel()
    }

    /// It would be registered on each connection, and end that.
    @Test(.enabled(if: busKinds.contains(.daemon), "\(BusKind.daemon.unavailable ?? "")"))
    func `a name for which the bus ends each connection is given up`() throws {
        // Too small for any match rule.
        let bus = try PrivateBus(.daemon, limits: ["max_message_size": 250])
        let result = try run(productPath("notify-wait"), ["--address", bus.address, "com.example.refused"])
        #expect(result.status == 69 && result.errorOutput.contains("Disconnected from the bus"), "\(result)")
    }
}
