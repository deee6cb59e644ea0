// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyBridge
import TestSupport
import Testing

@Suite struct ConfigurationTests {
    private let least = "broker = mqtt://localhost\nrealm = home\nimport = com.example.a\n"

    private func settings(_ text: String) throws -> BridgeConfiguration {
        try BridgeConfiguration(ConfigurationFile(text, named: "bridge.conf"))
    }

    private func fault(_ text: String) -> String? {
        do {
            _ = try settings(text)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test("A FIFO in place of the settings, the password or a certificate is an error, not a wait")
    func fifo() throws {
        let folder = try TemporaryFolder()
        let fifo = "\(folder.path)/fifo"
        #expect(mkfifo(fifo, 0o600) == 0)
        let check = ["--check", "--config"]
        let environment = ["XDG_STATE_HOME": folder.path]
        let settings = try run(productPath("notify-bridge"), check + [fifo], environment: environment)
        #expect(settings.status == 1 && settings.errorOutput.contains("\(fifo) is not a regular file"))
        for key in ["password-file", "ca-file", "cert-file", "key-file"] {
            try folder.write(least + "user = ann\n\(key) = \(fifo)\n", to: "bridge.conf")
            let path = "\(folder.path)/bridge.conf"
            let result = try run(productPath("notify-bridge"), check + [path], environment: environment)
            #expect(result.status == 1 && result.errorOutput.contains("\(fifo) is not a regular file"), "\(key)")
        }
    }

    @Test("A FIFO in place of what a bridge keeps, or of its draft, is replaced, not waited for")
    func stateFIFO() throws {
        let folder = try TemporaryFolder()
        for name in ["bridge-id", "bridge-id.new"] { #expect(mkfifo("\(folder.path)/\(name)", 0o600) == 0) }
        let state = StateFolder(path: folder.path)
        let origin = try state.origin()
        #expect(try state.origin() == origin)
    }

    @Test("A broker is a host or a socket, with its usual port")
    func brokers() throws {
        for (text, host, port) in [
            ("mqtt://localhost", "localhost", 1883), ("mqtts://broker.example", "broker.example", 8883),
            ("mqtt://10.0.0.1:99", "10.0.0.1", 99), ("mqtt://[fe80::1%eth0]:99", "fe80::1%eth0", 99),
            ("/run/mosquitto", "/run/mosquitto", 0),
        ] {
            let broker = try #require(BrokerAddress(text), "\(text)")
            #expect(broker.host == host)
            #expect(broker.port == Int32(port))
        }
        for text in [
            "localhost", "http://localhost", "mqtt://", "mqtt://:1", "mqtt://a:", "mqtt://a:0", "mqtt://a:65536",
            "mqtt://a/b",
            "mqtt://me@a", "mqtt://[::1", "mqtt://[::1]1", "socket",
        ] {
            #expect(BrokerAddress(text) == nil, "\(text)")
        }
    }

    @Test("The settings are those in the file, and otherwise the documented defaults")
    func values() throws {
        let short = try settings(least)
        #expect(short.keepalive == 60)
        #expect(short.rate == 1_000)
        #expect(!short.catchesUp)
        let long = try settings(
            """
            # A comment
            broker=mqtts://broker.example\r
            realm = work.1_a-b
              export = com.example.*

            import = com.example.a
            import = com.example.b
            user = me
            catch-up = yes
            keepalive = 12h
            rate = 7
            """
        )
        #expect(long.broker.description == "mqtts://broker.example:8883")
        #expect(long.exports.prefixes == ["com.example."])
        #expect(long.imports.names.count == 2)
        #expect(long.keepalive == 43_200)
        #expect(long.rate == 7)
        #expect(long.catchesUp)
        #expect(try settings(least + "keepalive = 0").keepalive == 0)
    }

    @Test(
        "Each mistake is reported with its line",
        arguments: [
            ("broker = nowhere", "bridge.conf:1: 'nowhere' is not a broker"),
            ("realm = a/b", "bridge.conf:1: a realm consists"),
            ("realm = a\nrealm = b", "bridge.conf:2: 'realm' is set twice"),
            ("color = red", "bridge.conf:1: unknown setting 'color'"),
            ("export", "bridge.conf:1: missing '='"),
            ("export =", "bridge.conf:1: 'export' has no value"),
            ("import = self.x", "bridge.conf:1: 'self.x' begins with 'self.'"),
            ("export = user.uid.*", "bridge.conf:1: 'user.uid.*' begins with 'user.uid.'"),
            ("export = *", "bridge.conf:1: '*' needs at least one whole part"),
            ("keepalive = 4s", "bridge.conf:1: 'keepalive' is 0, or 5s to 12h"),
            ("keepalive = 13h", "bridge.conf:1: 'keepalive' is"),
            ("keepalive = 99999999999h", "bridge.conf:1: 'keepalive' is"),
            ("keepalive = 1500ms", "bridge.conf:1: 'keepalive' is"),
            ("user = a\0b", "bridge.conf:1: 'user' contains a NUL"),
            ("rate = 0", "bridge.conf:1: 'rate' is"),
            ("catch-up = maybe", "bridge.conf:1: 'catch-up' is yes or no"),
            ("password-file = secret", "bridge.conf:1: 'password-file' needs an absolute path"),
            ("ca-file = /nowhere/ca.crt", "bridge.conf:1: /nowhere/ca.crt can't be read"),
            ("cert-file = /usr", "bridge.conf:1: /usr is not a regular file"),
            ("realm = a", "bridge.conf names no broker"),
            ("broker = /run/mosquitto", "bridge.conf names no realm"),
            ("broker = /run/mosquitto\nrealm = a", "bridge.conf has neither 'export' nor 'import'"),
        ]
    )
    func faults(text: String, beginning: String) throws {
        #expect(try #require(fault(text)).hasPrefix(beginning), "\(fault(text) ?? "")")
    }

    @Test("A password that others can read is an error, and so is one that would be sent unencrypted")
    func passwords() throws {
        let folder = try TemporaryFolder()
        let file = "\(folder.path)/password"
        try folder.write("sesame\n", to: "password")
        let lines = "realm = home\nimport = com.example.a\nuser = me\npassword-file = \(file)\n"
        chmod(file, 0o640)
        #expect(try #require(fault("broker = mqtt://localhost\n" + lines)).contains("can be read by others"))
        chmod(file, 0o600)
        for broker in [
            "mqtt://localhost", "mqtt://127.0.0.9", "mqtt://[::1]", "/run/mosquitto", "mqtts://broker.example",
        ] {
            #expect(fault("broker = \(broker)\n" + lines) == nil)
        }
        for broker in ["mqtt://broker.example", "mqtt://10.0.0.1", "mqtt://127.example"] {
            #expect(try #require(fault("broker = \(broker)\n" + lines)).contains("use mqtts://"))
        }
        #expect(try settings("broker = mqtt://localhost\n" + lines).password == "sesame")
    }

    @Test("--check says whether the settings are valid, and a missing configuration is an error")
    func check() throws {
        let folder = try TemporaryFolder()
        let program = try productPath("notify-bridge")
        let environment: [String: String?] = ["XDG_CONFIG_HOME": folder.path, "XDG_CONFIG_DIRS": folder.path]
        let none = try run(program, ["--check"], environment: environment)
        #expect(none.status == 1)
        #expect(none.errorOutput.contains("There is no configuration, so no name may cross"))
        _ = try run("mkdir", ["\(folder.path)/notifybus"])
        try folder.write(least, to: "notifybus/bridge.conf")
        #expect(try run(program, ["--check"], environment: environment).status == 0)
        try folder.write(least + "x = y", to: "notifybus/bridge.conf")
        #expect(try run(program, ["--check"], environment: environment).status == 1)
        #expect(try run(program, ["--chekc"]).status == 64)
        #expect(try run(program, ["--session", "--system"]).status == 64)
        #expect(try run(program, ["--version"]).output == "notify-bridge (NotifyBus) \(notifyBusVersion)\n")
    }

    @Test("A name that can only be a mistake is reported")
    func mistake() throws {
        let folder = try TemporaryFolder()
        try folder.write(least + "import = com.example.*.done\n", to: "bridge.conf")
        let result = try run(
            productPath("notify-bridge"),
            ["--check", "--config", "\(folder.path)/bridge.conf"],
            environment: ["XDG_STATE_HOME": folder.path]
        )
        #expect(result.status == 0)
        #expect(
            result.errorOutput
                == "notify-bridge: 'com.example.*.done' is a name; only .* at the end is a pattern\n"
        )
    }

    @Test("A copied disk doesn't bring another machine's id")
    func identity() throws {
        let folder = try TemporaryFolder()
        let state = StateFolder(path: "\(folder.path)/state")
        let first = try state.origin()
        #expect(try state.origin() == first)
        let file = "\(folder.path)/state/bridge-id"
        let text = try readFile(file)
        try folder.write("\(text.prefix(32)) otherowner\n", to: "state/bridge-id")
        #expect(try state.origin() != first)
    }
}
