// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The reader of a command's output may stop reading, as `less` does. Signals and the timeout must not wait for it.
@Suite struct StuckReaderTests {
    /// Where `notify-wait` writes, without a reader.
    enum Target: CaseIterable {
        case descriptor, fifo, socket, errors
    }

    private let pipe: Pipe
    private let folder: TemporaryFolder
    private let socket: DatagramSocket

    init() throws {
        pipe = try Pipe()
        pipe.fill()
        folder = try TemporaryFolder()
        socket = try DatagramSocket("\(folder.path)/socket", isAbstract: false)
        socket.fill()
    }

    private func start(_ bus: PrivateBus, _ target: Target, _ options: [String] = []) throws -> RunningCommand {
        let more =
            switch target {
            case .descriptor: ["--ready-fd", "3"]
            case .fifo: ["--ready-file", "/dev/fd/3"]
            case .socket: [] as [String]
            case .errors: ["-v"]
            }
        return try TestSupport.start(
            productPath("notify-wait"),
            ["--address", bus.address, "com.example.a"] + more + options,
            environment: ["NOTIFY_SOCKET": target == .socket ? "\(folder.path)/socket" : nil],
            errorOutput: target == .errors ? .descriptor(pipe.writeEnd) : .pipe,
            descriptors: [3: pipe.writeEnd]
        )
    }

    @Test(arguments: anyBusKind(), Target.allCases)
    func `the timeout ends a wait that can't say that it is live`(kind: BusKind, target: Target) throws {
        let bus = try PrivateBus(kind)
        #expect(try start(bus, target, ["-t", "1s"]).wait().status == 2)
    }

    /// Until it has said that it is live, a signal has its default effect.
    @Test(arguments: anyBusKind(), [Target.descriptor, .fifo, .socket])
    func `so does a signal`(kind: BusKind, target: Target) throws {
        let bus = try PrivateBus(kind)
        let waiting = try start(bus, target)
        // Once nothing but what it cannot write is left to do.
        try #require(waitUntil { blocksSignals(waiting.pid) && processState(waiting.pid) == "S" })
        waiting.send(signal: SIGTERM)
        let result = try waiting.wait()
        #expect(result.status == 143 && !result.exitedNormally)
    }

    private func blocksSignals(_ process: pid_t) -> Bool {
        // Before it runs its program, a new process blocks all.
        guard (try? readFile("/proc/\(process)/comm")) == "notify-wait\n" else { return false }
        let line = try? run("grep", ["SigBlk", "/proc/\(process)/status"]).output
        return signals(inStatusLine: line ?? "").contains(Int(SIGTERM))
    }

    @Test(arguments: anyBusKind())
    func `a signal ends a wait that can't say that a command has failed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let ready = "\(folder.path)/ready"
        let command = ["--", "sh", "-c", "echo ran; exit 1"]
        let waiting = try start(bus, .errors, ["-q", "-f", "--ready-file", ready] + command)
        try #require(waitUntil { (try? readFile(ready)) != nil })
        try bus.makeCenter().postOnceConnected("com.example.a")
        try waiting.waitForOutput(containing: "ran\n")
        try #require(waitUntil { children(of: waiting.pid, named: "notify-wait").isEmpty })
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
    }

    @Test(arguments: anyBusKind(), ["1", "2"])
    func `the timeout ends a wait that can't print what came`(kind: BusKind, count: String) throws {
        let bus = try PrivateBus(kind)
        let result = try inTime {
            let arguments = ["-t", "1s", "-n", count, "com.example.a"]
            let waiting = try bus.startWaiting(arguments, output: .descriptor(pipe.writeEnd))
            try bus.makeCenter().postOnceConnected("com.example.a")
            return try waiting.wait()
        } unless: {
            $0.errorOutput.contains("after 0 notifications")
        }
        #expect(result.status == 2)
        #expect(result.errorOutput.contains("timed out after 1 notification"))
    }

    @Test(arguments: anyBusKind())
    func `a message waits for a reader that comes back`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try start(bus, .errors)
        var text = ""
        while !text.contains("notify-wait: the observer is live\n") { text += try pipe.read() }
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
    }

    @Test(arguments: anyBusKind())
    func `a terminal that is not read keeps neither a signal nor the timeout from ending a wait`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        for options in [[], ["-t", "1s"]] {
            let terminal = try PseudoTerminal()
            let waiting = try bus.startWaiting(["-f", "com.example.*"] + options, output: .descriptor(terminal.end))
            for number in 0..<2_000 {
                try center.postOnceConnected(NotifyName("com.example.\(String(repeating: "x", count: 100)).\(number)"))
            }
            try center.synchronize(timeout: .patience)
            if options == [] {
                try #require(waitUntil { terminal.isFull })
                waiting.send(signal: SIGTERM)
            }
            #expect(try waiting.wait().status == (options == [] ? 143 : 2))
        }
    }

    @Test(arguments: anyBusKind())
    func `a terminal that is not read does not keep a signal from ending notify-top`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let terminal = try PseudoTerminal(columns: 250, lines: 150)
        let top = try TestSupport.start(
            productPath("notify-top"),
            ["--address", bus.address],
            environment: ["TERM": "xterm"],
            input: .descriptor(terminal.end),
            output: .descriptor(terminal.end)
        )
        _ = try terminal.read(until: "Observers unknown")
        let center = bus.makeCenter()
        // A page of these is more than a terminal keeps for its reader.
        let filled = waitUntil {
            for number in 0..<300 {
                try? center.postOnceConnected(NotifyName("com.example.\(String(repeating: "x", count: 200)).\(number)"))
            }
            return terminal.isFull
        }
        try #require(filled)
        top.send(signal: SIGTERM)
        #expect(try top.wait().status == 143)
    }

    @Test(arguments: anyBusKind())
    func `an agent serves though its log is not read`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try TestSupport.start(
            productPath("notify-agent"),
            ["--address", bus.address, "-v"],
            errorOutput: .descriptor(pipe.writeEnd)
        )
        #expect(waitUntil { (try? bus.run("notify-lifecycle", ["list"]).status) == 0 })
        agent.send(signal: SIGTERM)
        #expect(try agent.wait().status == 0)
    }
}
