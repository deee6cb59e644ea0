// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import TestSupport
import Testing

/// `--heartbeat`: that nothing comes is said, without a gap.
@Suite struct HeartbeatTests {
    @Test(arguments: anyBusKind())
    func `whenever nothing has come for so long, there is an empty record`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let start = ContinuousClock.now
        let waiting = try bus.startWaiting(["-n2", "--heartbeat", "200ms", "--format", "<%n %c>", "a"])
        try waiting.waitForOutput(containing: "< 0>\n< 0>\n")
        #expect(ContinuousClock.now - start >= .milliseconds(400))
        try bus.makeCenter().postOnceConnected("a")
        let text = try waiting.waitForOutput(containing: "<a 1>\n< 1>\n")
        let beats = text.prefix { $0 != "a" }.filter { $0 == "0" }.count
        #expect(Double(beats) <= (ContinuousClock.now - start) / .milliseconds(200), "no more than there was time for")
        try bus.makeCenter().postOnceConnected("a")
        #expect(try waiting.wait().status == 0, "a heartbeat is no notification")
    }

    @Test(arguments: anyBusKind())
    func `what comes often enough leaves no heartbeat`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try inTime {
            let waiting = try bus.startWaiting(["-n20", "--heartbeat", "2s", "a"])
            let center = bus.makeCenter()
            for _ in 1...20 {
                try center.postOnceConnected("a")
                try passTime("150ms")
            }
            return try waiting.wait()
        } unless: {
            $0.output.contains("\n\n")
        }
        #expect(result.lines == Array(repeating: "a", count: 20))
    }

    @Test(arguments: anyBusKind())
    func `a command runs for a heartbeat with an empty name, and not beside itself`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = #"echo "begin <$NOTIFY_NAME>"; read line; exit 3"#
        let waiting = try bus.startWaiting(
            ["-f", "--heartbeat", "100ms", "a", "--", "sh", "-c", script],
            input: .pipe
        )
        try waiting.waitForOutput(containing: "begin <>\n")
        try bus.makeCenter().postOnceConnected("a")
        // More than one heartbeat passes meanwhile.
        try passTime("350ms")
        try waiting.writeInput("1\n")
        try waiting.waitForErrorOutput(containing: "the command for the heartbeat exited with status 3\n")
        try waiting.waitForOutput(containing: "begin <a>\n")
        try waiting.writeInput("2\n")
        try waiting.waitForOutput(containing: "begin <>\nbegin <a>\nbegin <>\n")
        waiting.send(signal: 15)
        #expect(try waiting.wait().status == 143)
    }

    @Test(arguments: ["0", "soon", "100us"])
    func `a duration that is none is a usage error`(duration: String) throws {
        let result = try run(productPath("notify-wait"), ["--address", nowhere, "--heartbeat", duration, "a"])
        #expect(result.status == 64)
        #expect(result.errorOutput.hasPrefix("notify-wait: option '--heartbeat': "))
    }
}
