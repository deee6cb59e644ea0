// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite struct PipeTests {
    @Test(arguments: anyBusKind())
    func `a reader that leaves after one line ends the wait quietly, though no second notification ever comes`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let result = try bus.script(
            "notify-wait -f com.example.x --then 'notify-post com.example.x' | head -1; echo ${PIPESTATUS[@]}"
        )
        #expect(result.output == "com.example.x\n0 0\n")
        #expect(result.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `a reader that leaves in the middle of many notifications ends the wait quietly`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try bus.script(
            """
            notify-wait -f 'com.example.*' --then 'seq -f com.example.%g 5000 | notify-post -' |
            head -1; echo ${PIPESTATUS[@]}
            """
        )
        #expect(result.output == "com.example.1\n0 0\n")
        // The command of --then may say that it was ended: it runs on by itself.
        #expect(result.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `a reader that never reads ends the wait as well`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try bus.script("notify-wait -f com.example.x | true; echo ${PIPESTATUS[@]}")
        #expect(result.output == "0 0\n")
        #expect(result.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `each line is in the pipe as its notification comes`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let waiting = try bus.startWaiting(["-f", "com.example.x", "com.example.y"])
        var expected: [String] = []
        for round in 1...20 {
            expected.append(round % 3 == 0 ? "com.example.y" : "com.example.x")
            try center.postOnceConnected(NotifyName(expected[round - 1]))
            #expect(try waiting.waitForOutputLines(round) == expected)
        }
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
    }

    @Test(arguments: anyBusKind())
    func `a reader that is slow loses nothing, and the timeout still ends it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let pipe = try Pipe()
        // A pipe of one page, so that the wait has to wait for its reader.
        try #require(fcntl(pipe.writeEnd, 1031 /* F_SETPIPE_SZ */, 4096) >= 4096)
        let waiting = try bus.startWaiting(
            ["-n", "1000", "com.example.*"],
            output: .descriptor(pipe.writeEnd)
        )
        pipe.closeWriteEnd()
        let expected = (1...1_000).map { "com.example.\($0)" }
        for name in expected { try center.postOnceConnected(NotifyName(name)) }
        var text = ""
        while true {
            let more = try pipe.read()
            if more.isEmpty { break }
            text += more
        }
        #expect(text == expected.map { $0 + "\n" }.joined())
        #expect(try waiting.wait().status == 0)

        let unread = try Pipe()
        try #require(fcntl(unread.writeEnd, 1031 /* F_SETPIPE_SZ */, 4096) >= 4096)
        let arguments = ["-t", "1s", "-n", "2000", "com.example.*"]
        let stuck = try inTime { try bus.startWaiting(arguments, output: .descriptor(unread.writeEnd)) }
        unread.closeWriteEnd()
        for name in expected { try center.postOnceConnected(NotifyName(name)) }
        #expect(try stuck.wait().status == 2)
    }

    @Test(arguments: anyBusKind())
    func `an output that can't be written is a failure, a closed one too`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for (output, reason) in [("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")] {
            let result = try bus.script(
                "notify-wait com.example.x --then 'notify-post com.example.x 2>/dev/null' >\(output)"
            )
            #expect(result.status == 1)
            #expect(result.errorOutput == "notify-wait: can't write to standard output: \(reason)\n")
        }
    }

    @Test(arguments: anyBusKind())
    func `-q needs no output at all`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for output in ["/dev/full", "&-"] {
            let result = try bus.script("notify-wait -q com.example.x --then 'notify-post com.example.x' >\(output)")
            #expect(result.status == 0)
            #expect(result.output == "" && result.errorOutput == "")
        }
        let piped = try bus.script(
            "notify-wait -q com.example.x -t 120s --then 'notify-post com.example.x' | true; echo ${PIPESTATUS[@]}"
        )
        #expect(piped.output == "0 0\n" && piped.errorOutput == "")
    }
}
