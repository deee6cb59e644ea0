// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Brokers that die, are stopped, or give the client ID to another client.
@Suite(.enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable))
struct FailureTests {
    /// Two machines: the second hears what the first posts below `com.example.`.
    private struct Pair {
        let here: Machine
        let there: Machine
        let heard: Recorder<String>

        init(_ kind: BusKind, _ broker: Mosquitto, _ more: [String] = []) throws {
            here = try Machine(kind, broker, ["export = com.example.*"] + more)
            there = try Machine(kind, broker, ["import = com.example.*"] + more)
            heard = try there.hear(prefixes: ["com.example."])
        }

        /// Lets the second machine connect first, so that it hears everything that the first then sends.
        func reconnect(_ body: () throws -> Void) throws {
            let bridge = try here.bridge
            bridge.send(signal: SIGSTOP)
            try body()
            try there.wait(connected: true)
            bridge.send(signal: SIGCONT)
            try here.wait(connected: true)
        }

        /// Posts names, and returns once the bridge has them.
        func post(_ names: [String], times: Int = 1) throws {
            let before = try here.figure("sent") + here.figure("waiting") + here.figure("merged")
            for _ in 0..<times {
                for name in names { try here.center.postOnceConnected(NotifyName(name)) }
                try here.center.flush(timeout: nil)
            }
            let all = before + names.count * times
            let came = try waitUntil {
                try here.figure("sent") + here.figure("waiting") + here.figure("merged") >= all
            }
            #expect(came)
        }

        /// What was heard before a last post.
        func allHeard() throws -> [String] {
            try here.center.postOnceConnected("com.example.last")
            #expect(heard.wait(timeout: .seconds(120)) { $0.contains("com.example.last") })
            return heard.elements.filter { $0 != "com.example.last" }
        }
    }

    private let names = (0..<10).map { "com.example.\($0)" }

    @Test("While the broker is down names are coalesced; then each crosses once", arguments: busKinds)
    func killed(kind: BusKind) throws {
        let broker = try Mosquitto()
        let pair = try Pair(kind, broker)
        try broker.kill()
        try pair.here.wait(connected: false)
        try pair.post(names, times: 100)
        #expect(try pair.here.figure("waiting") == names.count)
        try pair.reconnect { try broker.start() }
        #expect(try pair.allHeard().sorted() == names)
        #expect(
            try pair.here.bridge.waitForErrorOutput(containing: "trying again").contains("no connection to mqtt://")
        )
    }

    @Test(
        "What was sent to a stopped broker crosses once, after the bridge has noticed",
        arguments: busKinds
    )
    func stopped(kind: BusKind) throws {
        let broker = try Mosquitto()
        let pair = try Pair(kind, broker, ["keepalive = 5s"])
        broker.stop()
        try pair.post(names)
        let isSent = try waitUntil { try pair.here.figure("sent") == names.count }
        #expect(isSent)
        // Within three keepalives.
        try pair.here.wait(connected: false)
        try pair.there.wait(connected: false)
        try pair.reconnect { broker.resume() }
        #expect(try pair.allHeard().sorted() == names)
    }

    @Test("A million posts of ten names while the broker is away take no memory", arguments: busKinds)
    func million(kind: BusKind) throws {
        let broker = try Mosquitto()
        let pair = try Pair(kind, broker)
        try broker.kill()
        try pair.here.wait(connected: false)
        try pair.post(names, times: 100)
        let bridge = try pair.here.bridge.pid
        let before = residentBytes(of: bridge)
        for _ in 0..<100_000 {
            for name in names { try pair.here.center.postOnceConnected(NotifyName(name)) }
        }
        // After all of them.
        try pair.here.center.postOnceConnected("com.example.quiet")
        let came = try waitUntil(timeout: .seconds(120)) { try pair.here.figure("waiting") > names.count }
        #expect(came)
        #expect(try pair.here.figure("waiting") == names.count + 1)
        #expect(residentBytes(of: bridge) - before < 4_000_000)
        try pair.reconnect { try broker.start() }
        #expect(try pair.allHeard().sorted() == names + ["com.example.quiet"])
    }

    @Test("A bridge whose broker gives its id to another client too says so, and waits longer each time")
    func sharedID() throws {
        let folder = try TemporaryFolder()
        #expect(try run("mosquitto_passwd", ["-b", "-c", "\(folder.path)/users", "home", "sesame"]).status == 0)
        let broker = try Mosquitto(
            settings: [
                "allow_anonymous false", "password_file \(folder.path)/users", "use_username_as_clientid true",
            ],
            folder: folder
        )
        let password = try secret("sesame", in: folder)
        let lines = ["user = home", "password-file = \(password)", "import = com.example.*"]
        let machine = try Machine(.daemon, broker, lines)
        let thief = try start(
            "mosquitto_sub",
            ["-V", "5", "-p", "\(broker.port)", "-u", "home", "-P", "sesame", "-t", "x"],
            input: .null
        )
        try machine.bridge.waitForErrorOutput(
            containing: "another client may be using the same client ID",
            timeout: .seconds(120)
        )
        // Of SIGTERM it takes no notice while it has no connection.
        thief.send(signal: SIGKILL)
        _ = try thief.wait()
    }

    @Test("When the broker says that another client took the id, a bridge waits a minute, and exits at once if asked")
    func takenOver() throws {
        // Mosquitto 2.0 doesn't report that. This broker answers CONNECT and SUBSCRIBE, and then reports it.
        let port = try freePort()
        let script = """
            import socket
            server = socket.create_server(("127.0.0.1", \(port)))
            print("ready", flush=True)
            client, _ = server.accept()
            client.recv(4096)
            client.sendall(bytes([0x20, 3, 0, 0, 0]))
            client.recv(4096)
            client.sendall(bytes([0x90, 4, 0, 1, 0, 0]) + bytes([0xE0, 1, 0x8E]))
            client.recv(4096)
            """
        let other = try start(python, ["-c", script], input: .null)
        try other.waitForOutput(containing: "ready")
        let machine = try Machine(
            .daemon,
            ["broker = mqtt://127.0.0.1:\(port)", "realm = home", "import = com.example"]
        )
        try machine.startBridge(waitsFor: "another client connected")
        #expect(try machine.status()["connected"] == "boolean false")
        #expect(try machine.endBridge() == 0)
    }

    @Test("Brokers connected in a ring deliver each name once", arguments: busKinds)
    func ring(kind: BusKind) throws {
        let ports = [try freePort(), try freePort()]
        let brokers = try ports.indices.map { index in
            try Mosquitto(
                port: ports[index],
                settings: [
                    "allow_anonymous true", "connection ring", "address 127.0.0.1:\(ports[1 - index])",
                    "topic nb1/# out 0", "restart_timeout 1", "try_private false", "cleansession true",
                    "remote_clientid ring\(index)",
                ]
            )
        }
        for index in brokers.indices {
            try brokers[index].waitForLog("ring\(1 - index)")
        }
        let here = try Machine(kind, brokers[0], ["export = com.example.*", "import = com.example.*"])
        let there = try Machine(kind, brokers[1], ["export = com.example.*", "import = com.example.*"])
        let heard = [try here.hear(prefixes: ["com.example."]), try there.hear(prefixes: ["com.example."])]
        for name in names { try here.center.postOnceConnected(NotifyName(name)) }
        try there.center.postOnceConnected("com.example.last")
        for recorder in heard {
            #expect(recorder.wait(forCount: 11, timeout: .seconds(120)))
        }
        // They do come around again, and are ignored.
        #expect(try waitUntil { try there.figure("duplicates") > 100 })
        #expect(try waitUntil { try here.figure("duplicates") > 100 })
        for recorder in heard { #expect(recorder.elements.sorted() == (names + ["com.example.last"]).sorted()) }
    }

    @Test("A bridge first sends queued names when it is asked to exit", arguments: busKinds)
    func farewell(kind: BusKind) throws {
        // By default Mosquitto has only 1,000 messages wait for the other machine.
        let broker = try Mosquitto(settings: ["allow_anonymous true", "max_queued_messages 0"])
        let pair = try Pair(kind, broker)
        // More than may be unconfirmed at a time.
        broker.stop()
        try pair.post((0..<3_000).map { "com.example.\($0)" })
        let bridge = try pair.here.bridge
        // Its time begins once the broker is back.
        bridge.send(signal: SIGSTOP)
        #expect(waitUntil { processState(bridge.pid) == "T" })
        bridge.send(signal: SIGTERM)
        broker.resume()
        bridge.send(signal: SIGCONT)
        #expect(try bridge.wait().status == 0)
        #expect(pair.heard.wait(forCount: 3_000))
    }

    @Test("A bridge that is asked to exit first sends what the bus has for it", arguments: busKinds)
    func postedBefore(kind: BusKind) throws {
        var areHeard = false
        _ = try waitUntil {
            let broker = try Mosquitto()
            let pair = try Pair(kind, broker)
            let bridge = try pair.here.bridge
            bridge.send(signal: SIGSTOP)
            #expect(waitUntil { processState(bridge.pid) == "T" })
            for number in 0..<100 { try pair.here.center.postOnceConnected(NotifyName("com.example.\(number)")) }
            try pair.here.center.synchronize(timeout: .patience)
            bridge.send(signal: SIGTERM)
            let start = ContinuousClock.now
            bridge.send(signal: SIGCONT)
            #expect(try bridge.wait().status == 0)
            // The bus has a second. On a busy machine that may be too short, and nothing else may be.
            let mayBeLate = ContinuousClock.now - start >= .seconds(1)
            areHeard = pair.heard.wait(forCount: 100, timeout: mayBeLate ? .seconds(10) : .patience)
            return areHeard || !mayBeLate
        }
        #expect(areHeard)
    }

    @Test("A bridge exits with 69 without a bus, and when its bus goes away", arguments: busKinds)
    func bus(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["import = com.example.*"])
        machine.bus.kill()
        let result = try machine.bridge.wait()
        #expect(result.status == 69)
        #expect(throws: (any Error).self) { try machine.startBridge() }
        #expect(try machine.bridge.wait().status == 69)
    }
}
