// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyBridge
import NotifyCore
import TestSupport
import Testing

/// `catch-up = yes`: a machine that was away hears each name posted in the meantime once.
@Suite(.enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable))
struct CatchUpTests {
    private let lines = ["export = com.example.*", "import = com.example.*", "catch-up = yes"]
    private let names = (0..<10).map { "com.example.\($0)" }

    /// What was heard before a last name, which `machine` posts.
    private func heard(_ recorder: Recorder<String>, upTo last: String, by machine: Machine) throws -> [String] {
        try machine.center.postOnceConnected(NotifyName(last))
        #expect(recorder.wait(timeout: .seconds(120)) { $0.contains(last) })
        return recorder.elements.filter { $0 != last }
    }

    /// A bridge is a newcomer until it has read everything that the broker retains.
    private func waitUntilNoNewcomer(_ machine: Machine) throws {
        let folder = "\(machine.folder.path)/notifybus"
        // Not its draft, "bridge-seen.new", which a bridge that is killed leaves behind.
        try #require(try waitUntil { try run("ls", [folder]).output.split(separator: "\n").contains("bridge-seen") })
    }

    @Test("A bridge that was stopped hears each name once; a new one hears nothing", arguments: busKinds)
    func away(kind: BusKind) throws {
        let broker = try Mosquitto()
        let here = try Machine(kind, broker, lines)
        let there = try Machine(kind, broker, lines)
        let inTime = try there.hear(prefixes: ["com.example."])
        try here.center.postOnceConnected("com.example.before")
        #expect(try heard(inTime, upTo: "com.example.live", by: here) == ["com.example.before"])

        try waitUntilNoNewcomer(there)
        #expect(try there.endBridge() == 0)
        let late = try there.hear(prefixes: ["com.example."])
        for _ in 0..<100 {
            for name in names { try here.center.postOnceConnected(NotifyName(name)) }
        }
        try here.center.synchronize(timeout: nil)
        let isSent = try waitUntil { try here.figure("sent") == 1_002 && here.figure("waiting") == 0 }
        #expect(isSent)
        try there.startBridge()
        #expect(try heard(late, upTo: "com.example.last", by: here).sorted() == names)

        let new = try Machine(kind, ["broker = \(broker.address)", "realm = home"] + lines)
        let nothing = try new.hear(prefixes: ["com.example."])
        try new.startBridge()
        #expect(try heard(nothing, upTo: "com.example.news", by: here) == [])
        // Nothing comes back to the first one.
        #expect(try here.figure("received") == 0)
    }

    @Test("Of names that a stranger publishes only so many bytes are remembered")
    func long() throws {
        let folder = try TemporaryFolder()
        let text = "broker = mqtt://localhost\nrealm = home\nimport = com.example.*\ncatch-up = yes\n"
        let configuration = try BridgeConfiguration(ConfigurationFile(text, named: "bridge.conf"))
        var seen = SeenStamps(in: StateFolder(path: folder.path), configuration)
        let stamp = Stamp(origin: Origin(high: 1, low: 2), sequence: 3)
        let tail = String(repeating: "x", count: 511 - 18)
        let names = try (100_000..<124_000).map { try NotifyName("com.example.\($0)\(tail)") }
        for name in names { _ = seen.note(stamp, of: name) }
        let remembered = names.count { !seen.note(stamp, of: $0) }
        #expect(remembered == (12 << 20) / (511 + 64))
    }

    @Test("A bridge that is killed hears each name once, too", arguments: busKinds)
    func killed(kind: BusKind) throws {
        let broker = try Mosquitto()
        let here = try Machine(kind, broker, lines)
        let there = try Machine(kind, broker, lines)
        try waitUntilNoNewcomer(there)
        try there.endBridge(signal: SIGKILL)
        for name in names { try here.center.postOnceConnected(NotifyName(name)) }
        try here.center.synchronize(timeout: nil)
        #expect(try waitUntil { try here.figure("sent") == names.count && here.figure("waiting") == 0 })
        let late = try there.hear(prefixes: ["com.example."])
        try there.startBridge()
        #expect(try heard(late, upTo: "com.example.last", by: here).sorted() == names)
    }

    @Test("A name that a new line allows is heard from then on", arguments: busKinds)
    func newLine(kind: BusKind) throws {
        let broker = try Mosquitto()
        let here = try Machine(kind, broker, ["export = com.*", "catch-up = yes"])
        let base = ["broker = \(broker.address)", "realm = home", "catch-up = yes", "import = com.example.a"]
        let there = try Machine(kind, base)
        try there.startBridge()
        try waitUntilNoNewcomer(there)
        try there.endBridge()
        let late = try there.hear(prefixes: ["com."])
        try here.center.postOnceConnected("com.example.a")
        try here.center.postOnceConnected("com.example.b")
        try here.center.synchronize(timeout: nil)
        #expect(try waitUntil { try here.figure("sent") == 2 && here.figure("waiting") == 0 })
        try there.configure(base + ["import = com.example.b", "import = com.example.last"])
        try there.startBridge()
        #expect(try heard(late, upTo: "com.example.last", by: here) == ["com.example.a"])
    }
}
