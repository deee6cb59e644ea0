// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite(.enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable))
struct CrossingTests {
    @Test("A name crosses there and back, once", arguments: busKinds)
    func thereAndBack(kind: BusKind) throws {
        let broker = try Mosquitto()
        let lines = ["export = com.example.door", "import = com.example.door"]
        let here = try Machine(kind, broker, lines)
        let there = try Machine(kind, broker, lines)
        let heardHere = try here.hear(["com.example.door"])
        let heardThere = try there.hear(["com.example.door"])

        try here.center.postOnceConnected("com.example.door")
        #expect(heardThere.wait(forCount: 1))
        try there.center.postOnceConnected("com.example.door")
        #expect(heardHere.wait(forCount: 2))
        #expect(heardThere.wait(forCount: 2))
        #expect(try here.figure("sent") == 1)
        // A name counts as received once it is posted, and may be heard before.
        let isCounted = try waitUntil { try there.figure("received") == 1 }
        #expect(isCounted)
    }

    @Test("10,000 posts each way are each heard exactly once, and none comes back", arguments: busKinds)
    func bothWays(kind: BusKind) throws {
        let broker = try Mosquitto()
        let lines = ["export = com.example.*", "import = com.example.*", "rate = 1000000"]
        let machines = [try Machine(kind, broker, lines), try Machine(kind, broker, lines)]
        let heard = try machines.map { try $0.hear(prefixes: ["com.example."]) }
        // Few enough at a time that nothing is coalesced.
        let round = 500
        for first in stride(from: 0, to: 10_000, by: round) {
            for (index, machine) in machines.enumerated() {
                for number in first..<first + round {
                    try machine.center.postOnceConnected(NotifyName("com.example.\(index).\(number)"))
                }
            }
            for recorder in heard { #expect(recorder.wait(forCount: 2 * (first + round))) }
        }
        // After everything that could still come.
        for machine in machines { try machine.center.postOnceConnected("com.example.last") }
        for recorder in heard {
            #expect(recorder.wait(forCount: 20_002))
            let names = recorder.elements.filter { $0 != "com.example.last" }
            #expect(Set(names).count == 20_000)
            #expect(names.count == 20_000)
            // In order, for each poster.
            for poster in 0...1 {
                let own = names.filter { $0.hasPrefix("com.example.\(poster).") }
                #expect(own == (0..<10_000).map { "com.example.\(poster).\($0)" })
            }
        }
        for machine in machines {
            #expect(try machine.figure("sent") == 10_001)
            // The broker does not even send a bridge its own messages.
            #expect(try machine.figure("duplicates") == 0)
            let isCounted = try waitUntil { try machine.figure("received") == 10_001 }
            #expect(isCounted)
        }
    }

    @Test("Every name crosses unchanged", arguments: busKinds)
    func strangeNames(kind: BusKind) throws {
        let broker = try Mosquitto()
        let here = try Machine(kind, broker, ["export = com.example.*"])
        let there = try Machine(kind, broker, ["import = com.example.*"])
        let heard = try there.hear(prefixes: ["com.example."])
        let escaped = String(
            String.UnicodeScalarView(
                [0xA0, 0xFDD0, 0xFFFF, 0x10FFFF].compactMap { Unicode.Scalar(UInt32($0)) }
            )
        )
        let names = [
            "com.example.%/+#$", "com.example.\(escaped)", "com.example.", "com.example...x", "com.example.\u{E9}",
            "com.example.e\u{301}", "com.example.x\u{A0}y", "com.example." + String(repeating: "a", count: 499),
            "com.example." + String(repeating: "#", count: 499), "com.example." + String(repeating: ".", count: 253),
            "com.example.last",
        ]
        for name in names { try here.center.postOnceConnected(NotifyName(name)) }
        #expect(heard.wait(forCount: names.count))
        // Byte for byte: strings compare canonical forms.
        #expect(heard.elements.map { Array($0.utf8) } == names.map { Array($0.utf8) })
        #expect(try there.figure("refused") == 0)
    }

    @Test("Names that are not listed don't cross", arguments: busKinds)
    func unnamed(kind: BusKind) throws {
        let broker = try Mosquitto()
        let here = try Machine(kind, broker, ["export = com.*", "export = org.notifybus.*", "export = user.*"])
        let there = try Machine(
            kind,
            broker,
            ["import = com.example.*", "import = com.apple.*", "import = org.notifybus.*", "import = user.*"]
        )
        // Except for names that stay in this process.
        let heard = try there.hear(prefixes: ["net.", "com.", "org.", "user."])
        for name in [
            "net.example.a", "com.other.b", "self.x", "user.uid.\(geteuid()).x", "com.apple.system.timezone",
            "org.notifybus.system.sleep", "org.notifybus.session.locked", "com.example.last",
        ] {
            try here.center.postOnceConnected(NotifyName(name))
        }
        #expect(heard.wait(forCount: 1))
        #expect(heard.elements == ["com.example.last"])
        // Nor do they come in if another client publishes them.
        for topic in [
            "net/example/a", "self/x", "user/uid/0/x", "com/apple/system/timezone", "org/notifybus/system/sleep",
            "org/notifybus/session/locked", "com/example/last",
        ] {
            try broker.publish("nb1/home/\(topic)")
        }
        #expect(heard.wait(forCount: 2))
        #expect(heard.elements == ["com.example.last", "com.example.last"])
        // com.other.b and the four that are not imported; net and self are not even subscribed to.
        #expect(try there.figure("refused") == 4)
    }

    @Test("Any MQTT client can post a name, and hear one", arguments: busKinds)
    func plainClients(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["import = com.example.door", "export = com.example.bell"])
        let heard = try machine.hear(["com.example.door"])
        try broker.publish("nb1/home/com/example/door")
        #expect(heard.wait(forCount: 1))

        let listener = try start(
            "mosquitto_sub",
            ["-V", "5", "-i", "listener", "-p", "\(broker.port)", "-t", "nb1/home/#", "-C", "1", "-F", "%t %r"],
            input: .null
        )
        try broker.waitForLog("Sending SUBACK to listener")
        try machine.center.postOnceConnected("com.example.bell")
        try listener.waitForOutput(containing: "nb1/home/com/example/bell 0")
    }

    @Test("A message that is not a name, or has a payload, is refused and counted", arguments: busKinds)
    func strangeMessages(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["import = com.example.*"])
        let heard = try machine.hear(prefixes: ["com."])
        try broker.publish("nb1/home/com/example/a", ["-m", "open the door"])
        try broker.publish("nb1/home/com/example/a", ["-m", String(repeating: "0", count: 32) + ":"])
        try broker.publish("nb1/home/com/example/a", ["-m", String(repeating: "0", count: 32) + ":+1"])
        try broker.publish("nb1/home/com/example/a%2Eb")
        try broker.publish("nb1/home/com/example")
        // So large that the broker doesn't pass it on.
        try machine.folder.write(String(repeating: "x", count: 1_048_576), to: "large")
        try broker.publish("nb1/home/com/example/a", ["-f", "\(machine.folder.path)/large"])
        try broker.publish("nb1/home/com/example/last")
        #expect(heard.wait(forCount: 1))
        #expect(heard.elements == ["com.example.last"])
        #expect(try machine.figure("refused") == 5)
    }

    @Test("A stamp that was seen before is ignored", arguments: busKinds)
    func duplicates(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["import = com.example.*"])
        let heard = try machine.hear(prefixes: ["com.example."])
        let origin = String(repeating: "a", count: 32)
        for number in [7, 8, 7, 8, 6] {
            try broker.publish("nb1/home/com/example/\(number)", ["-m", "\(origin):\(number)"])
        }
        // Its own, back by a detour.
        try broker.publish("nb1/home/com/example/own", ["-m", "\(try machine.origin()):1"])
        try broker.publish("nb1/home/com/example/last")
        #expect(heard.wait(forCount: 4))
        #expect(heard.elements == ["com.example.7", "com.example.8", "com.example.6", "com.example.last"])
        #expect(try machine.figure("duplicates") == 3)
    }

    @Test("A forged stamp of one name silences no other", arguments: busKinds)
    func forgedStamps(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["import = com.example.*"])
        let heard = try machine.hear(prefixes: ["com.example."])
        let origin = String(repeating: "a", count: 32)
        // A client that may publish to one topic uses up the numbers that another bridge uses next, and the last one.
        for number in ["1", "2", "3", "18446744073709551615"] {
            try broker.publish("nb1/home/com/example/weather", ["-m", "\(origin):\(number)"])
        }
        for number in 1...3 { try broker.publish("nb1/home/com/example/alarm", ["-m", "\(origin):\(number)"]) }
        try broker.publish("nb1/home/com/example/last")
        #expect(heard.wait { $0.contains("com.example.last") })
        #expect(heard.elements.count { $0 == "com.example.alarm" } == 3)
        #expect(try machine.figure("duplicates") == 0)
    }

    @Test(
        "A name with a control character crosses in neither direction; it is counted, and said once",
        arguments: busKinds
    )
    func controlCharacters(kind: BusKind) throws {
        let broker = try Mosquitto()
        let here = try Machine(kind, broker, ["export = com.example.*"])
        let there = try Machine(kind, broker, ["import = com.example.*"])
        let heard = try there.hear(prefixes: ["com."])
        let names = [
            "com.example.a\nExecStopPost=/bin/true", "com.example.\u{1B}[2J", "com.example.\u{85}",
            "com.example.\u{2028}",
        ]
        for name in names { try here.center.postOnceConnected(NotifyName(name)) }
        for topic in ["a%0AExecStopPost=%2Fbin%2Ftrue", "%1B[2J", "%C2%85", "\u{202E}"] {
            try broker.publish("nb1/home/com/example/\(topic)")
        }
        try here.center.postOnceConnected("com.example.last")
        #expect(heard.wait { $0.contains("com.example.last") })
        #expect(heard.elements == ["com.example.last"])
        #expect(try here.figure("refused") == names.count)
        #expect(try there.figure("refused") == 4)
        for machine in [here, there] {
            let log = try machine.bridge.waitForErrorOutput(containing: "control character")
            #expect(log.split(separator: "\n").count { $0.contains("control character") } == 1)
            #expect(log.contains("com.example.a\\nExecStopPost="))
            #expect(!log.contains("\nExecStopPost"))
        }
    }

    @Test("One bridge serves a bus: a second one exits with 1", arguments: busKinds)
    func second(kind: BusKind) throws {
        let broker = try Mosquitto()
        let machine = try Machine(kind, broker, ["import = com.example.*"])
        let second = try run(
            productPath("notify-bridge"),
            ["--address", machine.bus.address, "--config", "\(machine.folder.path)/bridge.conf"],
            environment: ["XDG_STATE_HOME": machine.folder.path]
        )
        #expect(second.status == 1)
        #expect(second.errorOutput.contains("Another bridge already serves this bus"))
        #expect(try machine.endBridge() == 0)
    }
}
