// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// A name that can only be a mistake is reported, and `--literal` takes each name as it stands.
@Suite struct MistakeTests {
    struct Typed: CustomTestStringConvertible, Sendable {
        let names: [String]
        let options: [String]
        let line: String
        var testDescription: String { names.joined(separator: " ") }

        init(_ names: [String], _ line: String, _ options: [String] = []) {
            (self.names, self.line, self.options) = (names, line, options)
        }
    }

    private static let ofPatterns = ["com.x*", "*.done", "com.*.done", "com.x.**"].map {
        Typed([$0], "'\($0)' is a name; only .* at the end is a pattern")
    }

    private static let ofEvents = [
        Typed(
            ["org.notifybus.system.willSleep"],
            "no event has the name 'org.notifybus.system.willSleep'; did you mean org.notifybus.system.willsleep?"
        ),
        Typed(
            ["com.apple.screenisUnlocked"],
            "no event has the name 'com.apple.screenisUnlocked'; did you mean com.apple.screenIsUnlocked?"
        ),
        Typed(
            ["org.notifybus.system.lidclose"],
            "no event has the name 'org.notifybus.system.lidclose'; "
                + "did you mean com.apple.system.powermanagement.clamshellstate?"
        ),
        Typed(
            ["org.notifybus.system.qqqqqqqq"],
            "no event has the name 'org.notifybus.system.qqqqqqqq'; see notifybus-events(7)"
        ),
    ]

    private static let ofWords = [
        Typed(["com.x", "sh", "site"], "'sh' is taken for a name; a command comes after '--'"),
        Typed(["com.x", "minutes"], "'minutes' is taken for a name; a duration is one word, as in 10m", ["-t", "10"]),
    ]

    @Test(arguments: anyBusKind(), ofPatterns + ofEvents + ofWords)
    func `notify-wait says in one line what can only be a mistake`(kind: BusKind, typed: Typed) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        for options in [[], ["--literal"], ["-q"]] {
            let waiting = try bus.startWaiting(options + typed.options + typed.names)
            try center.postOnceConnected(NotifyName(typed.names[0]))
            let result = try waiting.wait()
            #expect(result.status == 0, "it waits for it all the same")
            #expect(result.errorOutput == (options.isEmpty ? "notify-wait: \(typed.line)\n" : ""))
        }
    }

    @Test(arguments: anyBusKind())
    func `what may well be meant is not worth a line`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let names = [
            "com.apple.mobile.state", "org.notifybus.system.willsleep", "com.apple.screenIsLocked", "a", "b",
            "com.example.*", "org.notifybus", "com.apple.system.timezone",
        ]
        let waiting = try bus.startWaiting(names)
        try bus.makeCenter().postOnceConnected("a")
        #expect(try waiting.wait().errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `with --literal a name may end in an asterisk`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["--literal", "com.example.*", "com.x "])
        let center = bus.makeCenter()
        try center.postOnceConnected("com.example.a")
        try center.postOnceConnected("com.example.*")
        #expect(try waiting.wait().output == "com.example.*\n")
    }

    private static let blanks = [
        ("com.x ", "ends with a space"), ("com.x\r", "ends with a carriage return"), ("com.x\t", "ends with a tab"),
        ("com.x\n", "ends with a line feed"), (" com.x", "begins with a space"),
    ]

    @Test(arguments: ["notify-wait", "notify-post", "notify-state"], blanks)
    func `a name with a blank at an end is a usage error that names it`(
        command: String,
        blank: (name: String, what: String)
    ) throws {
        let result = try run(productPath(command), ["--address", nowhere, blank.name])
        #expect(result.status == 64)
        let shown = blank.name.replacing("\r", with: "\\r").replacing("\n", with: "\\n").replacing("\t", with: "\\t")
        let consequence = command == "notify-post" ? ", so nothing was posted" : ""
        #expect(
            result.errorOutput
                == "\(command): '\(shown)' \(blank.what)\(consequence); if that is meant, use --literal\n"
        )
        let literal = try run(productPath(command), ["--address", nowhere, "--literal", blank.name])
        #expect(literal.status == 69)
    }

    @Test(arguments: anyBusKind())
    func `a line of a file from Windows is reported, and posted only with --literal`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let heard = Recorder<String>()
        let center = bus.makeCenter()
        let observation = try center.addObserver(matching: .everything, timeout: .seconds(25)) {
            heard.appendFromBus($0.string)
        }
        let result = try bus.run("notify-post", ["-"], input: "com.a\r\ncom.b\n")
        #expect(result.status == 1)
        #expect(
            result.errorOutput
                == "notify-post: line 1: 'com.a\\r' ends with a carriage return; if that is meant, use --literal\n"
        )
        #expect(try bus.run("notify-post", ["--literal", "-"], input: "com.a\r\n").status == 0)
        try center.postOnceConnected("com.end")
        try #require(heard.wait { $0.last == "com.end" })
        #expect(heard.elements == ["com.b", "com.a\r", "com.end"])
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `with -v it says when it is put into the background, and when it is back`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try start(productPath("notify-agent"), ["--address", bus.address], environment: withoutDesktop)
        try agent.waitForErrorOutput(containing: "ready")
        let waiting = try bus.startWaiting(["-v", "com.x"])
        let lines = [
            ("background", "in the background: hears nothing until it is in the foreground again"),
            ("foreground", "in the foreground again"),
            ("suspend", "suspended: hears each name once when it is resumed"),
            ("resume", "in the foreground again"),
        ]
        var text = ""
        for (verb, line) in lines {
            #expect(try bus.run("notify-lifecycle", [verb, "pid:\(waiting.pid)"]).status == 0)
            text += "notify-wait: \(line)\n"
            try waiting.waitForErrorOutput(containing: text)
        }
        waiting.send(signal: SIGTERM)
        #expect(try waiting.wait().status == 143)
        agent.send(signal: SIGTERM)
        _ = try agent.wait()
    }
}
