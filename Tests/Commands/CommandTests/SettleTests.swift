// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// `--settle`: what comes shortly one after the other is one.
@Suite struct SettleTests {
    @Test(arguments: anyBusKind())
    func `a burst is one record for each name, with how often it came, and ends a wait for one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["--settle", "1s", "--format", "%n %c", "a", "b", "c"])
        let center = bus.makeCenter()
        try center.synchronize(timeout: .patience)
        // While the bus stands still they gather, and then come at once.
        bus.stop()
        for name in ["b", "a", "b", "b", "a", "b"] { try center.postOnceConnected(NotifyName(name)) }
        bus.resume()
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.lines == ["b 4", "a 2"])
    }

    @Test(arguments: anyBusKind())
    func `a burst is one run, with all names, the last one and how many there were`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = #"printf '%s|%s|%s\n' "$NOTIFY_NAMES" "$NOTIFY_NAME" "$NOTIFY_COUNT""#
        let waiting = try bus.startWaiting(["-n2", "--settle", "1s", "*", "--", "sh", "-c", script])
        let center = bus.makeCenter()
        try center.synchronize(timeout: .patience)
        bus.stop()
        for name in ["b", "a", "b", "c", "a"] { try center.postOnceConnected(NotifyName(name)) }
        bus.resume()
        try waiting.waitForOutput(containing: "b\na\nc|a|5\n")
        try center.postOnceConnected("d")
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.output == "b\na\nc|a|5\nd|d|1\n")
    }

    @Test(arguments: anyBusKind())
    func `a name with a line feed is not taken for two`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = #"printf '%s|%s|' "$NOTIFY_NAMES" "$NOTIFY_COUNT""#
        let waiting = try bus.startWaiting(["--settle", "1s", "*", "--", "sh", "-c", script])
        let center = bus.makeCenter()
        try center.synchronize(timeout: .patience)
        bus.stop()
        for name in ["a", "x\nroot.alarm", "b"] { try center.postOnceConnected(NotifyName(name)) }
        bus.resume()
        #expect(try waiting.wait().output == "a\nb|3|")
    }

    @Test(arguments: anyBusKind())
    func `bursts that come while the command runs are one more run`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = #"echo "<$NOTIFY_NAMES>"; read line"#
        let waiting = try bus.startWaiting(
            ["-f", "-v", "--settle", "1ms", "a", "b", "c", "--", "sh", "-c", script],
            input: .pipe
        )
        let center = bus.makeCenter()
        try center.postOnceConnected("a")
        try waiting.waitForOutput(containing: "<a>\n")
        for name in ["b", "c", "b"] {
            try center.postOnceConnected(NotifyName(name))
            // Printed when it has settled.
            try waiting.waitForOutput(containing: "\n\(name)\n")
        }
        try waiting.writeInput("1\n2\n")
        try waiting.waitForOutput(containing: "<b\nc>\n")
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
    }

    @Test(arguments: anyBusKind())
    func `a stream that does not pause is dealt with all the same`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-f", "--settle", "200ms", "--format", "%c", "a"])
        let center = bus.makeCenter()
        // On a busy machine a post may come so late that those before it have settled.
        var count = 0
        let heard = waitUntil {
            count += 1
            try? center.postOnceConnected("a")
            let lines = (try? waiting.waitForOutputLines(1, timeout: .milliseconds(20))) ?? []
            return lines.contains { Int($0) ?? 0 > 1 }
        }
        #expect(heard && count > 1)
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
    }

    @Test(arguments: anyBusKind())
    func `what has not settled when the time is over counts`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let result = try inTime {
            let waiting = try bus.startWaiting(["-f", "-t", "3s", "--settle", "1h", "a"])
            try center.postOnceConnected("a")
            return try waiting.wait()
        } unless: {
            $0.output.isEmpty
        }
        #expect(result.status == 2)
        #expect(result.output == "a\n")
        let all = try inTime {
            let waiting = try bus.startWaiting(["--all", "-t", "3s", "--settle", "1h", "a", "b"])
            for name in ["a", "b"] { try center.postOnceConnected(NotifyName(name)) }
            return try waiting.wait()
        } unless: {
            $0.lines.count < 2
        }
        #expect(all.status == 0)
    }

    @Test(arguments: anyBusKind())
    func `when the time is over, notifications are counted, not bursts`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let result = try inTime {
            let waiting = try bus.startWaiting(["-f", "-t", "1s", "--settle", "1h", "a", "b"])
            for name in ["a", "b"] { try center.postOnceConnected(NotifyName(name)) }
            return try waiting.wait()
        } unless: {
            $0.lines.count < 2
        }
        #expect(result.errorOutput == "notify-wait: timed out after 2 notifications\n")
    }

    @Test(arguments: anyBusKind())
    func `bursts that come before a restart are one run, with the number of all`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let output = try inTime {
            // It is killed only after a while.
            let script = #"trap "" TERM; echo "<$NOTIFY_NAMES|$NOTIFY_COUNT>"; read line"#
            let waiting = try bus.startWaiting(
                ["-f", "-v", "--settle", "1ms", "--on-busy", "restart", "a", "b", "c", "d", "--", "sh", "-c", script],
                input: .pipe
            )
            let center = bus.makeCenter()
            try center.postOnceConnected("a")
            try waiting.waitForOutput(containing: "<a|1>\n")
            for name in ["b", "c", "d"] {
                try center.postOnceConnected(NotifyName(name))
                // Printed when it has settled.
                try waiting.waitForOutput(containing: "\n\(name)\n")
            }
            try waiting.writeInput("1\n")
            let output = try waiting.waitForOutput(containing: "<b")
            waiting.send(signal: SIGTERM)
            try waiting.writeInput("2\n")
            _ = try waiting.wait()
            return output
        } unless: {
            !$0.contains("<b\nc\nd|3>\n")
        }
        #expect(output.contains("<b\nc\nd|3>\n"))
    }
}
