// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// TLS, passwords and access lists of a real broker.
@Suite(.enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable))
struct SecurityTests {
    @Test("Names cross over TLS, with a certificate on both sides", arguments: busKinds)
    func tls(kind: BusKind) throws {
        let folder = try TemporaryFolder()
        try makeCertificates(in: folder)
        let path = folder.path
        let broker = try Mosquitto(
            listener: [
                "cafile \(path)/ca.crt", "certfile \(path)/server.crt", "keyfile \(path)/server.key",
                "require_certificate true",
            ],
            folder: folder
        )
        let lines = [
            "broker = mqtts://127.0.0.1:\(broker.port)", "realm = home", "ca-file = \(path)/ca.crt",
            "cert-file = \(path)/client.crt", "key-file = \(path)/client.key", "export = com.example.*",
            "import = com.example.*",
        ]
        let here = try Machine(kind, lines)
        try here.startBridge()
        let there = try Machine(kind, lines)
        try there.startBridge()
        let heard = try there.hear(prefixes: ["com.example."])
        try here.center.postOnceConnected("com.example.a")
        #expect(heard.wait(forCount: 1))

        // Without 'ca-file' the system's authorities count, here by the variable of OpenSSL that names them.
        let plain = try Machine(kind, lines.filter { !$0.hasPrefix("ca-file") })
        try plain.startBridge(through: ["env", "SSL_CERT_FILE=\(path)/ca.crt"])
        try here.center.postOnceConnected("com.example.b")
        #expect(heard.wait(forCount: 2))

        // Another authority is not trusted, but the bridge keeps trying, since certificates are renewed.
        let stranger = try Machine(kind, lines.filter { !$0.hasPrefix("ca-file") } + ["ca-file = \(path)/other.crt"])
        try stranger.startBridge(waitsFor: "no connection to mqtts://")
        #expect(try stranger.status()["connected"] == "boolean false")
    }

    @Test("With a wrong password a bridge exits with 1", arguments: busKinds)
    func password(kind: BusKind) throws {
        let folder = try TemporaryFolder()
        #expect(try run("mosquitto_passwd", ["-b", "-c", "\(folder.path)/users", "home", "sesame"]).status == 0)
        let broker = try Mosquitto(
            settings: ["allow_anonymous false", "password_file \(folder.path)/users"],
            folder: folder
        )
        let lines = ["broker = \(broker.address)", "realm = home", "import = com.example.*", "user = home"]
        let right = try Machine(kind, lines + ["password-file = \(try secret("sesame\n", in: folder))"])
        try right.startBridge()
        let wrong = try Machine(kind, lines + ["password-file = \(try secret("Sesame", in: folder, "wrong"))"])
        try wrong.startBridge(waitsFor: "refuses this bridge")
        #expect(try wrong.bridge.wait().status == 1)
    }

    @Test("With one access rule for all users, each stays in the realm of its name", arguments: busKinds)
    func realms(kind: BusKind) throws {
        let folder = try TemporaryFolder()
        for (index, user) in ["home", "work"].enumerated() {
            let create = index == 0 ? ["-c"] : []
            let arguments = ["-b"] + create + ["\(folder.path)/users", user, "sesame"]
            #expect(try run("mosquitto_passwd", arguments).status == 0)
        }
        try folder.write("pattern readwrite nb1/%u/#\n", to: "acl")
        let broker = try Mosquitto(
            settings: [
                "allow_anonymous false", "password_file \(folder.path)/users", "acl_file \(folder.path)/acl",
            ],
            folder: folder
        )
        let password = try secret("sesame", in: folder)
        func machine(realm: String, user: String) throws -> Machine {
            let machine = try Machine(
                kind,
                [
                    "broker = \(broker.address)", "realm = \(realm)", "user = \(user)", "password-file = \(password)",
                    "import = com.example.*", "export = com.example.*",
                ]
            )
            try machine.startBridge()
            return machine
        }
        let here = try machine(realm: "home", user: "home")
        let there = try machine(realm: "home", user: "home")
        // Subscribes where it may not.
        let spy = try machine(realm: "home", user: "work")
        let heard = try there.hear(prefixes: ["com.example."])
        try here.center.postOnceConnected("com.example.a")
        #expect(heard.wait(forCount: 1))
        // Publishes where it may not.
        try spy.center.postOnceConnected("com.example.b")
        try spy.center.postOnceConnected("com.example.c")
        #expect(try waitUntil { try spy.figure("sent") == 2 })
        try here.center.postOnceConnected("com.example.last")
        #expect(heard.wait(forCount: 2))
        #expect(heard.elements == ["com.example.a", "com.example.last"])
        #expect(try spy.figure("received") == 0)
    }

    @Test("Nobody who hears a bridge's messages can keep it off the broker", arguments: busKinds)
    func clientID(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["export = com.example.*", "import = com.example.*"])
        let spy = try start(
            "mosquitto_sub",
            ["-V", "5", "-i", "spy", "-p", "\(broker.port)", "-t", "#", "-C", "1", "-F", "%p"],
            input: .null
        )
        try broker.waitForLog("Sending SUBACK to spy")
        try machine.center.postOnceConnected("com.example.a")
        let payload = try spy.waitForOutput(containing: ":")
        let origin = payload.prefix(32)
        #expect(try machine.origin() == origin)
        // Takes every id that can be read there.
        let heard = try machine.hear(prefixes: ["com.example."])
        for id in [String(origin), "nb1-\(origin)", "\(payload.split(separator: "\n")[0])"] {
            try broker.publish("x", ["-n"], ["-i", id])
            try broker.waitForLog("Client \(id) ")
        }
        try broker.publish("nb1/home/com/example/last")
        #expect(heard.wait { $0.contains("com.example.last") })
        let log = try machine.bridge.waitForErrorOutput(containing: "connected to")
        #expect(!log.contains("no connection"))
        #expect(log.split(separator: "\n").count { $0.contains("connected to") } == 1)
    }

    /// The bus, for which a relay stands in, passes on calls but is too busy to take the answers.
    @Test("Answers to strangers that the bus has yet to take are limited", arguments: busKinds)
    func answers(kind: BusKind) throws {
        let broker = try Mosquitto()
        let here = try Machine(
            kind,
            // As on a session bus.
            limits: ["max_replies_per_connection": 50_000],
            ["broker = \(broker.address)", "realm = home", "export = com.example.*"]
        )
        let relay = try BusRelay(to: here.bus.address)
        defer { relay.close() }
        try here.startBridge(at: relay.address)
        let stranger = try RawBusClient(address: here.bus.address)
        var question = RawMessage(.call)
        question.destination = "org.notifybus.Bridge1"
        question.path = "/org/notifybus/Bridge1"
        question.interface = "org.freedesktop.DBus.Introspectable"
        question.member = "Introspect"
        relay.hold()
        let count = 20_000
        let before = relay.bytesToClients.value
        for _ in 0..<count { try stranger.send(question) }
        // What the bus makes of each.
        question.sender = stranger.uniqueName
        try #require(relay.bytesToClients.wait(for: before + count * question.bytes.count))
        question.sender = nil
        relay.resume()
        // It answers again once the bus has taken what it had queued.
        #expect(waitUntil { (try? here.status()) != nil })
        question.member = "Unknown"
        let answers = try stranger.answers(before: stranger.send(question))
        let bytes = answers.reduce(0) { $0 + $1.bytes.count }
        // Beside what the bridge had queued, the sockets were full, of answers and of calls.
        #expect(bytes > 1 << 20 && bytes < 3 << 20, "\(answers.count) answers of \(bytes) bytes")
    }

    @Test("Two bridges with one id say so", arguments: busKinds)
    func copiedID(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["import = com.example.*"])
        let origin = try machine.origin()
        // As its own, from a ring.
        try broker.publish("nb1/home/com/example/a", ["-m", "\(origin):1"])
        try broker.publish("nb1/home/com/example/a", ["-m", "\(origin):18446744073709551615"])
        try machine.bridge.waitForErrorOutput(containing: "another bridge has the id of this one")
        #expect(try machine.figure("duplicates") == 2)
    }

    @Test("A filter that the broker refuses is reported, and the others work", arguments: busKinds)
    func refusedFilter(kind: BusKind) throws {
        let plugin = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
            .map { "\($0)/mosquitto_dynamic_security.so" }.first { (path: String) in access(path, R_OK) == 0 }
        guard let plugin else { return }
        let folder = try TemporaryFolder()
        try folder.write(
            """
            {"defaultACLAccess": {"publishClientSend": true, "publishClientReceive": true, "subscribe": true,
              "unsubscribe": true},
             "anonymousGroup": "all", "clients": [],
             "groups": [{"groupname": "all", "roles": [{"rolename": "few"}]}],
             "roles": [{"rolename": "few", "acls": [
               {"acltype": "subscribeLiteral", "topic": "nb1/home/com/secret/#", "priority": 1, "allow": false}]}]}
            """,
            to: "security.json"
        )
        chmod("\(folder.path)/security.json", 0o600)
        let broker = try Mosquitto(
            settings: [
                "allow_anonymous true", "plugin \(plugin)", "plugin_opt_config_file \(folder.path)/security.json",
            ],
            folder: folder
        )
        let machine = try Machine(kind, broker, ["import = com.secret.*", "import = com.example.*"])
        let heard = try machine.hear(prefixes: ["com."])
        try broker.publish("nb1/home/com/secret/a")
        try broker.publish("nb1/home/com/example/a")
        #expect(heard.wait(forCount: 1))
        #expect(heard.elements == ["com.example.a"])
        let filters = try machine.status()["filters"] ?? ""
        #expect(filters.contains("nb1/home/com/secret/#: Not authorized"))
        #expect(filters.contains("nb1/home/com/example/#: granted"))
    }
}
