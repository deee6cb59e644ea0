// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBridge
import NotifyCore
import TestSupport
import Testing

/// Brokers that don't take everything: a post that one does not take stops nothing else.
struct RefusalTests {
    private let others = (0..<12).map { "com.example.\($0)" }

    /// Posts a name that the broker does not take, and others behind it and after it: each of the others crosses once.
    ///
    /// - Returns: the log, once the refused name has been given up.
    private func expectOthersCross(
        _ kind: BusKind,
        _ whim: FussyBroker.Whim,
        _ name: String,
        _ more: [String] = []
    ) throws -> String {
        let broker = try FussyBroker([whim])
        let lines = ["broker = \(broker.address)", "realm = home"] + more
        let there = try Machine(kind, lines + ["import = com.example.*"])
        try there.startBridge()
        let heard = try there.hear(prefixes: ["com.example."])
        let here = try Machine(kind, lines + ["export = com.example.*"])
        try here.startBridge()
        let bridge = try here.bridge
        // In one batch: the refused one is in the middle.
        bridge.send(signal: SIGSTOP)
        #expect(waitUntil { processState(bridge.pid) == "T" })
        for name in others.prefix(5) + [name] + others.dropFirst(5) {
            try here.center.postOnceConnected(NotifyName(name))
        }
        try here.center.synchronize(timeout: .patience)
        bridge.send(signal: SIGCONT)
        let log = try bridge.waitForErrorOutput(containing: "does not take", timeout: .seconds(120))
        #expect(heard.wait(timeout: .seconds(120)) { Set($0).isSuperset(of: self.others) })
        // Posted once more, it costs nothing.
        try here.center.postOnceConnected(NotifyName(name))
        try here.center.postOnceConnected("com.example.last")
        #expect(heard.wait(timeout: .seconds(120)) { $0.contains("com.example.last") })
        #expect(heard.elements.filter { $0 != "com.example.last" }.sorted() == others.sorted())
        #expect(try here.figure("refused") == 2)
        #expect(try here.figure("waiting") == 0)
        #expect(try here.endBridge() == 0)
        let all = try bridge.waitForErrorOutput(containing: "does not take")
        #expect(all.split(separator: "\n").count { $0.contains("does not take") } == 1)
        #expect(!all.contains("same client ID"))
        return log
    }

    @Test("A name that is too large for the broker costs a line, and each other name crosses once", arguments: busKinds)
    func size(kind: BusKind) throws {
        let name = "com.example." + String(repeating: "x", count: 200)
        let log = try expectOthersCross(kind, .maximum(150), name)
        #expect(log.contains("does not take \(name): it needs a message of 2"))
        #expect(log.contains("150 are the limit"))
    }

    @Test("So does one for which the broker ends the connection without having told its limit", arguments: busKinds)
    func secretSize(kind: BusKind) throws {
        let name = "com.example." + String(repeating: "x", count: 200)
        let log = try expectOthersCross(kind, .secretMaximum(150), name)
        #expect(log.contains("does not take \(name): Packet too large; it is not sent any more"))
    }

    @Test("So does one whose topic the broker answers by a DISCONNECT", arguments: busKinds)
    func topic(kind: BusKind) throws {
        let log = try expectOthersCross(kind, .refuses("nb1/home/com/example/bad"), "com.example.bad")
        #expect(log.contains("does not take com.example.bad: Topic Name invalid; it is not sent any more"))
    }

    @Test("So does one with more slashes than the broker takes, which closes the connection", arguments: busKinds)
    func slashes(kind: BusKind) throws {
        let log = try expectOthersCross(kind, .slashes(7), "com.example.a.b.c.d.e.f.g")
        #expect(log.contains("does not take com.example.a.b.c.d.e.f.g: "))
    }

    @Test("Connections that end because of names raise no suspicion of another client", arguments: busKinds)
    func threeEnds(kind: BusKind) throws {
        let name = "com.example.a.b.c.d.e.f.g"
        let broker = try FussyBroker([.slashes(7), .unknownPropertyAfter("nb1/home/com/example/first", times: 1)])
        let lines = ["broker = \(broker.address)", "realm = home"]
        let there = try Machine(kind, lines + ["import = com.example.*"])
        try there.startBridge()
        let heard = try there.hear(prefixes: ["com.example."])
        let here = try Machine(kind, lines + ["export = com.example.*"])
        try here.startBridge()
        // The first one costs one connection, and crosses on the next. The other one costs two more.
        try here.center.postOnceConnected("com.example.first")
        #expect(heard.wait(timeout: .seconds(120)) { $0.contains("com.example.first") })
        try here.center.postOnceConnected(NotifyName(name))
        let bridge = try here.bridge
        try bridge.waitForErrorOutput(containing: "does not take \(name)", timeout: .seconds(120))
        try here.center.postOnceConnected("com.example.last")
        #expect(heard.wait(timeout: .seconds(120)) { $0.contains("com.example.last") })
        #expect(try here.endBridge() == 0)
        let log = try bridge.waitForErrorOutput(containing: "does not take")
        #expect(!log.contains("same client ID"))
    }

    @Test("With 'catch-up' the limit counts what it adds, too", arguments: busKinds)
    func retained(kind: BusKind) throws {
        let name = "com.example." + String(repeating: "x", count: 70)
        let log = try expectOthersCross(kind, .maximum(150), name, ["catch-up = yes"])
        #expect(log.contains("150 are the limit"))
    }

    @Test("A name for which the broker's answer ends libmosquitto is given up, too", arguments: busKinds)
    func unknownPropertyOfOne(kind: BusKind) throws {
        let whim = FussyBroker.Whim.unknownPropertyAfter("nb1/home/com/example/bad", times: 100)
        let log = try expectOthersCross(kind, whim, "com.example.bad")
        #expect(log.contains("does not take com.example.bad: libmosquitto can't handle what the broker sent"))
    }

    @Test(
        "A property that MQTT does not know ends neither the bridge nor the names that wait",
        arguments: busKinds
    )
    func unknownProperty(kind: BusKind) throws {
        let folder = try TemporaryFolder()
        let broker = try FussyBroker([.unknownProperty(until: "\(folder.path)/known")])
        let lines = ["broker = \(broker.address)", "realm = home"]
        let here = try Machine(kind, lines + ["export = com.example.*"])
        try here.startBridge(waitsFor: "trying again")
        for name in others { try here.center.postOnceConnected(NotifyName(name)) }
        #expect(try waitUntil { try here.figure("waiting") == others.count })
        let there = try Machine(kind, lines + ["import = com.example.*"])
        try there.startBridge(waitsFor: "no connection")
        let heard = try there.hear(prefixes: ["com.example."])
        // It connects before those names are sent: the answers are counted together.
        let bridge = try here.bridge
        bridge.send(signal: SIGSTOP)
        try folder.write("", to: "known")
        try there.wait(connected: true)
        bridge.send(signal: SIGCONT)
        #expect(heard.wait(forCount: others.count, timeout: .seconds(120)))
        #expect(heard.elements.sorted() == others.sorted())
        #expect(try broker.count("bad") >= 2)
        #expect(try here.endBridge() == 0)
    }

    @Test("With a limit too small for any name a bridge ends with a sentence", arguments: busKinds)
    func tooSmall(kind: BusKind) throws {
        let broker = try FussyBroker([.maximum(60)])
        let lines = ["broker = \(broker.address)", "realm = home", "export = com.example.*"]
        let machine = try Machine(kind, lines)
        try machine.startBridge(waitsFor: "takes messages of at most 60 bytes, and the shortest name")
        #expect(try machine.bridge.wait().status == 1)
    }

    @Test("Where the broker keeps no messages, 'catch-up' says so, and names cross", arguments: busKinds)
    func keepsNothing(kind: BusKind) throws {
        let broker = try FussyBroker([.keepsNothing])
        let lines = ["broker = \(broker.address)", "realm = home", "catch-up = yes"]
        let there = try Machine(kind, lines + ["import = com.example.*"])
        try there.startBridge(waitsFor: "keeps no messages, so 'catch-up' does nothing")
        try there.wait(connected: true)
        let heard = try there.hear(prefixes: ["com.example."])
        let here = try Machine(kind, lines + ["export = com.example.*"])
        try here.startBridge()
        for name in others { try here.center.postOnceConnected(NotifyName(name)) }
        #expect(heard.wait(forCount: others.count))
        #expect(heard.elements == others)
    }

    @Test(
        "A filter for which the broker ends the connection is left out, and the others are heard",
        arguments: busKinds
    )
    func filter(kind: BusKind) throws {
        let broker = try FussyBroker([.refuses("nb1/home/com/example/b")])
        let lines = ["broker = \(broker.address)", "realm = home"]
        let there = try Machine(kind, lines + ["a", "b", "c"].map { "import = com.example.\($0)" })
        try there.startBridge()
        let log = try there.bridge.waitForErrorOutput(containing: "does not take the filter")
        #expect(log.contains("does not take the filter nb1/home/com/example/b: Not authorized; no such name"))
        let heard = try there.hear(["com.example.a", "com.example.c"])
        let here = try Machine(kind, lines + ["export = com.example.*"])
        try here.startBridge()
        for name in ["com.example.a", "com.example.c"] { try here.center.postOnceConnected(NotifyName(name)) }
        #expect(heard.wait(forCount: 2))
        #expect(try there.status()["filters"]?.contains("nb1/home/com/example/b: ends the connection") == true)
    }

    @Test("A broker without wildcards is asked for the other names only", arguments: busKinds)
    func wildcards(kind: BusKind) throws {
        let broker = try FussyBroker([.hasNoWildcards])
        let lines = ["broker = \(broker.address)", "realm = home"]
        let there = try Machine(kind, lines + ["import = com.example.*", "import = org.example.a"])
        try there.startBridge()
        let log = try there.bridge.waitForErrorOutput(containing: "connected to")
        #expect(log.contains("refuses nb1/home/com/example/#: the broker takes no filters with '#'"))
        let heard = try there.hear(["org.example.a"])
        let here = try Machine(kind, lines + ["export = org.example.a"])
        try here.startBridge()
        try here.center.postOnceConnected("org.example.a")
        #expect(heard.wait(forCount: 1))
    }

    @Test("The first unconfirmed name that ends two connections in a row, alone the second time, is refused")
    func suspects() throws {
        let names = try ["a", "b", "c"].map { try NotifyName("com.example.\($0)") }
        var refusals = Refusals()
        #expect(refusals.noteEnd(unconfirmed: names) == nil)
        // It was not alone.
        #expect(refusals.noteEnd(unconfirmed: Array(names.prefix(2))) == nil)
        #expect(refusals.noteEnd(unconfirmed: Array(names.prefix(1))) == names[0])
        #expect(refusals.contains(names[0]) && !refusals.contains(names[1]))
        // Not in a row: something was confirmed in between.
        #expect(refusals.noteEnd(unconfirmed: Array(names.dropFirst(2))) == nil)
        refusals.acquit()
        #expect(refusals.noteEnd(unconfirmed: Array(names.dropFirst(2))) == nil)
        #expect(refusals.noteEnd(unconfirmed: Array(names.dropFirst(2))) == names[2])
        for number in 0..<Refusals.capacity { refusals.insert(try NotifyName("com.example.\(number)")) }
        #expect(!refusals.contains(names[0]))
    }
}
