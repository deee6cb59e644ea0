// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Runs what `Documentation/across-machines.md`, `Documentation/from-ios.md` and notify-bridge(8) show, with a broker that
/// is set up as the first of them says. Only addresses, ports, paths and passwords are replaced, and the authority that
/// vouches for the broker is the test's own. Scripts/check/install runs the lines with `systemctl`.
@Suite(.enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable))
struct DocumentTests {
    @Test("The home network of across-machines.md carries names between its machines", arguments: busKinds)
    func homeNetwork(kind: BusKind) throws {
        let house = try House()
        let configuration = try house.configuration(from: .acrossMachines)
        let check = try house.check(configuration, by: Document.acrossMachines.line("$ notify-bridge --check"))
        #expect(check.status == 0)
        #expect(check.output + check.errorOutput == "")

        let here = try Machine(kind, configuration)
        try here.startBridge()
        let there = try Machine(kind, configuration)
        try there.startBridge()
        let heard = try there.hear(prefixes: ["com.example."])
        // Not exported.
        try here.center.post("com.example.secret")
        try here.center.post("com.example.backup.done")
        #expect(heard.wait(forCount: 1))
        // A doorbell.
        let text = try Document.acrossMachines.text()
        let command = try #require(text.split(separator: "`").first { $0.hasPrefix("mosquitto_pub ") })
        try house.publish(String(command).replacing("…", with: house.broker))
        #expect(heard.wait(forCount: 2))
        #expect(heard.elements == ["com.example.backup.done", "com.example.door"])
    }

    @Test("The message from a phone in from-ios.md is heard")
    func phone() throws {
        let house = try House()
        // As the page says.
        let setting = "import = com.example.mail"
        #expect(try Document.fromIOS.text().contains("`\(setting)`"))
        let machine = try Machine(.daemon, house.configuration(from: .acrossMachines) + [setting])
        try machine.startBridge()
        let heard = try machine.hear(prefixes: ["com.example."])
        let command = try Document.fromIOS.line("$ mosquitto_pub")
            .replacing("broker.example", with: "127.0.0.1 -p \(house.port)")
            .replacing("/etc/ssl/certs", with: house.authorities).replacing("…", with: "sesame")
        try house.publish(command)
        #expect(heard.wait(forCount: 1))
        #expect(heard.elements == ["com.example.mail"])
    }

    @Test("Every example of notify-bridge(8) works as printed")
    func manualPage() throws {
        let house = try House()
        let configuration = try house.configuration(from: .manualPage)
        let check = try house.check(configuration, by: "notify-bridge --check")
        #expect(check.status == 0, "\(check.errorOutput)")
        let machine = try Machine(.daemon, configuration)
        try machine.startBridge()
        let heard = try machine.hear(prefixes: ["com.example."])
        for example in try Document.manualPage.blocks() {
            let line = example.joined(separator: "\n")
            switch line.split(separator: " ").prefix(2).joined(separator: " ") {
            case "broker =", "$ systemctl": break
            case "$ mosquitto_pub":
                try house.publish(line.dropFirst(2) + " " + house.broker)
                #expect(heard.wait(forCount: 1))
                #expect(heard.elements == ["com.example.door"])
            case "pattern readwrite": #expect(try Document.acrossMachines.block("# /etc/mosquitto/acl").contains(line))
            case "$ busctl":
                guard isInstalled("busctl") else { break }
                let command = String(line.dropFirst(2)).replacing("--user", with: "--address=\(machine.bus.address)")
                let result = try run("bash", ["-c", command])
                #expect(result.output.contains("\"connected\" b true"), "\(result.errorOutput)")
            default: Issue.record("Nobody has said how to try '\(line)'.")
            }
        }
    }
}

/// A broker that is set up as across-machines.md says.
private struct House {
    private let folder: TemporaryFolder
    private let mosquitto: Mosquitto

    init() throws {
        folder = try TemporaryFolder()
        let path = folder.path
        try makeCertificates(in: folder)
        _ = try secret("sesame\n", in: folder)
        let script = """
            set -e
            cd '\(path)'
            mosquitto_passwd -b -c passwords home sesame
            mkdir authorities
            cp ca.crt "authorities/$(openssl x509 -hash -noout -in ca.crt).0"
            """
        let made = try run("bash", ["-c", script])
        guard made.status == 0 else { throw TestSupportError("mosquitto_passwd: \(made.errorOutput)") }
        try folder.write(
            Document.acrossMachines.block("# /etc/mosquitto/acl").joined(separator: "\n") + "\n",
            to: "acl"
        )
        let lines = try Document.acrossMachines.block("# /etc/mosquitto/conf.d").map { line in
            line.replacing("/etc/mosquitto/certs/broker", with: "\(path)/server")
                .replacing("/etc/mosquitto", with: path)
        }
        guard lines.contains("listener 8883") else { throw TestSupportError("The page's broker has another port.") }
        mosquitto = try Mosquitto(
            listener: lines.filter { $0 != "listener 8883" },
            settings: ["persistence_location \(path)/"],
            folder: folder
        )
    }

    var port: Int { mosquitto.port }
    /// A folder of certificates, like `/etc/ssl/certs`.
    var authorities: String { "\(folder.path)/authorities" }
    /// What `mosquitto_pub` needs to know about the broker.
    var broker: String { "-h 127.0.0.1 -p \(port) --cafile \(folder.path)/ca.crt -u home -P sesame" }

    /// The bridge.conf that a document shows, for this broker.
    func configuration(from document: Document) throws -> [String] {
        let lines =
            try document == .manualPage
            ? document.block("broker = ") : document.block("# ~/.config/notifybus/bridge.conf")
        return lines.map { line in
            line.hasPrefix("password-file = ")
                ? "password-file = \(folder.path)/password"
                : line.replacing("mqtts://broker.example", with: "mqtts://127.0.0.1:\(port)")
        } + ["ca-file = \(folder.path)/ca.crt"]
    }

    /// Runs a command that looks at the configuration of a user.
    func check(_ configuration: [String], by command: String) throws -> CommandResult {
        _ = try run("mkdir", ["-p", "\(folder.path)/notifybus"])
        try folder.write(configuration.joined(separator: "\n") + "\n", to: "notifybus/bridge.conf")
        let programs = try productPath("notify-bridge").dropLast("/notify-bridge".count)
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return try run(
            "bash",
            ["-c", command],
            environment: ["XDG_CONFIG_HOME": folder.path, "PATH": "\(programs):\(path)"]
        )
    }

    func publish(_ command: String) throws {
        let result = try run("bash", ["-c", command])
        guard result.status == 0 else { throw TestSupportError("\(command): \(result.errorOutput)") }
    }
}

/// What these tests read.
private enum Document: String {
    case acrossMachines = "Documentation/across-machines.md"
    case fromIOS = "Documentation/from-ios.md"
    case manualPage = "man/notify-bridge.8.in"

    func text() throws -> String {
        try readFile("\(packageFolder)/\(rawValue)")
    }

    /// The lines of each fenced block, or of each example of the manual page.
    func blocks() throws -> [[String]] {
        var blocks: [[String]] = []
        var block: [String]?
        for line in try text().split(separator: "\n", omittingEmptySubsequences: false) {
            if line == ".EE" || block != nil && line.hasPrefix("```") {
                blocks += block.map { [$0] } ?? []
                block = nil
            } else if line == ".EX" || line.hasPrefix("```") {
                block = []
            } else {
                block?.append(String(line).replacing("\\-", with: "-").replacing("\\e", with: "\\"))
            }
        }
        return blocks
    }

    /// The block that begins this way.
    func block(_ beginning: String) throws -> [String] {
        guard let block = try blocks().first(where: { $0.first?.hasPrefix(beginning) == true }) else {
            throw TestSupportError("No block of \(rawValue) begins with '\(beginning)'.")
        }
        return block
    }

    /// The command on a line that begins this way, without its prompt.
    func line(_ beginning: String) throws -> String {
        guard let line = try blocks().joined().first(where: { $0.hasPrefix(beginning) }) else {
            throw TestSupportError("No line of \(rawValue) begins with '\(beginning)'.")
        }
        return String(line.dropFirst(2))
    }
}
