// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// How others learn that the observer is live.
@Suite struct ReadinessTests {
    @Test(arguments: anyBusKind())
    func `--ready-fd gets a newline and the end, and nothing posted after that is missed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        for number in [3, 9, 40] as [Int32] {
            let ready = try Pipe()
            let waiting = try start(
                productPath("notify-wait"),
                ["--address", bus.address, "--ready-fd", "\(number)", "a"],
                descriptors: [number: ready.writeEnd]
            )
            ready.closeWriteEnd()
            #expect(try ready.read() == "\n")
            #expect(try ready.read() == "", "the descriptor is still open")
            try center.postOnceConnected("a")
            #expect(try waiting.wait().status == 0)
        }
    }

    @Test(arguments: anyBusKind())
    func `--ready-file is whole when it is there, and nothing posted after that is missed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let center = bus.makeCenter()
        for round in 1...10 {
            let file = "\(folder.path)/ready.\(round)"
            let waiting = try start(
                productPath("notify-wait"),
                ["--address", bus.address, "--ready-file", file, "a"]
            )
            var text: String?
            // Without a pause, to see the file as early as it can be seen.
            let end = ContinuousClock.now + .patience
            while text == nil, ContinuousClock.now < end { text = try? readFile(file) }
            #expect(text == "\(waiting.pid)\n")
            try center.postOnceConnected("a")
            #expect(try waiting.wait().status == 0)
        }
        let names = try run("ls", ["-A", folder.path]).lines
        #expect(names.sorted() == (1...10).map { "ready.\($0)" }.sorted(), "something else was left behind")
    }

    @Test(arguments: anyBusKind())
    func `--ready-file takes the place of an old file in one step`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let file = "\(folder.path)/ready"
        let old = String(repeating: "old\n", count: 1000)
        try run("bash", ["-c", #"printf '%s' "$1" >"$2""#, "bash", old, file])
        let waiting = try start(productPath("notify-wait"), ["--address", bus.address, "--ready-file", file, "a"])
        var text: String? = old
        let end = ContinuousClock.now + .patience
        while text == old, ContinuousClock.now < end { text = try? readFile(file) }
        #expect(text == "\(waiting.pid)\n")
    }

    @Test(arguments: anyBusKind())
    func `a ready file that can't be put in place ends the wait with 1 and a sentence`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        for file in ["/nonexistent/ready", folder.path] {
            let result = try bus.run("notify-wait", ["--ready-file", file, "-t", "1h", "a"])
            #expect(result.status == 1)
            #expect(result.errorOutput.hasPrefix("notify-wait: can't create '\(file)': "))
        }
        #expect(try run("ls", ["-A", folder.path]).output == "")
    }

    @Test(arguments: anyBusKind(), [false, true])
    func `the socket NOTIFY_SOCKET gets READY=1, and nothing posted after that is missed`(
        kind: BusKind,
        isAbstract: Bool
    ) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/notify"
        let socket = try DatagramSocket(path, isAbstract: isAbstract)
        let waiting = try start(
            productPath("notify-wait"),
            ["--address", bus.address, "a"],
            environment: ["NOTIFY_SOCKET": isAbstract ? "@" + path : path]
        )
        #expect(try socket.receive() == "READY=1")
        try bus.makeCenter().postOnceConnected("a")
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `a NOTIFY_SOCKET that is left over is worth a line, and no failure`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for path in ["/nonexistent/socket", "nonsense", "/" + String(repeating: "x", count: 200), "@nonexistent"] {
            let environment: [String: String?] = ["NOTIFY_SOCKET": path]
            let waiting = try bus.startWaiting(["a"], environment: environment)
            try bus.makeCenter().postOnceConnected("a")
            let result = try waiting.wait()
            #expect(result.status == 0)
            #expect(result.errorOutput.hasPrefix("notify-wait: can't notify $NOTIFY_SOCKET: "))
            let quiet = try bus.startWaiting(["-q", "a"], environment: environment)
            try bus.makeCenter().postOnceConnected("a")
            #expect(try quiet.wait().errorOutput == "")
        }
        let unset = try bus.startWaiting(["a"], environment: ["NOTIFY_SOCKET": ""])
        try bus.makeCenter().postOnceConnected("a")
        #expect(try unset.wait().errorOutput == "")
    }

    @Test func `without a bus no readiness is reported`() throws {
        let folder = try TemporaryFolder()
        let ready = try Pipe()
        let result = try start(
            productPath("notify-wait"),
            [
                "--address", nowhere, "--ready-fd", "3", "--ready-file", "\(folder.path)/ready", "--then", "echo ran",
                "a",
            ],
            descriptors: [3: ready.writeEnd]
        ).wait()
        ready.closeWriteEnd()
        #expect(result.status == 69)
        #expect(result.output == "")
        #expect(try ready.read() == "")
        #expect(try run("ls", ["-A", folder.path]).output == "")
    }
}
