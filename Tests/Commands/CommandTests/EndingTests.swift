// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// When notify-wait exits.
@Suite struct EndingTests {
    /// Waits, posts, and returns what was printed. The wait must exit by itself with 0.
    private func lines(on kind: BusKind, _ arguments: [String], posting names: [String]) throws -> [String] {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(arguments)
        let center = bus.makeCenter()
        for name in names { try center.postOnceConnected(NotifyName(name)) }
        let result = try waiting.wait()
        #expect(result.status == 0)
        #expect(result.errorOutput == "")
        return result.lines
    }

    @Test(arguments: anyBusKind())
    func `one notification of any of its names ends it`(kind: BusKind) throws {
        #expect(try lines(on: kind, ["a", "b"], posting: ["c", "aa", "A", "b", "a"]) == ["b"])
    }

    @Test(arguments: anyBusKind(), [["-n", "3"], ["-n3"], ["--count", "3"], ["--count=3"]])
    func `-n ends it after that many notifications, even equal ones`(kind: BusKind, option: [String]) throws {
        #expect(try lines(on: kind, option + ["a", "b"], posting: ["a", "a", "b", "a"]) == ["a", "a", "b"])
    }

    @Test(arguments: anyBusKind())
    func `--all ends it when each name has arrived, and prints everything that arrived until then`(kind: BusKind) throws
    {
        let posts = ["a", "a", "x", "c", "a", "b", "c"]
        #expect(try lines(on: kind, ["--all", "a", "b", "c", "b"], posting: posts) == ["a", "a", "c", "a", "b"])
    }

    @Test(arguments: anyBusKind())
    func `--all with patterns ends it when a name of each has arrived, and each name`(kind: BusKind) throws {
        let posts = ["a", "a.1", "x.1", "a.2", "b.deep.1", "c.1"]
        let expected = ["a.1", "a.2", "b.deep.1", "c.1"]
        #expect(try lines(on: kind, ["--all", "a.*", "b.*", "c.*"], posting: posts) == expected)
        // One name may match several.
        #expect(try lines(on: kind, ["--all", "*", "a.*", "a.b"], posting: ["x", "a.b"]) == ["x", "a.b"])
        let mixed = ["b", "a.1", "c.d", "a.2", "c"]
        #expect(try lines(on: kind, ["--all", "a.*", "c", "b"], posting: mixed) == ["b", "a.1", "a.2", "c"])
    }

    @Test(arguments: anyBusKind())
    func `a pattern hears names that begin like it, once for each post, beside names, and * hears everything`(
        kind: BusKind
    ) throws {
        let posts = ["com.example", "com.example.", "com.example.a", "COM.example.b", "com.examples", "com.example.c"]
        let expected = ["com.example.", "com.example.a", "com.example.c"]
        #expect(
            try lines(on: kind, ["-n3", "com.example.*", "com.*", "com.example.a"], posting: ["com."] + posts)
                == ["com.", "com.example", "com.example."]
        )
        #expect(try lines(on: kind, ["-n3", "com.example.*"], posting: posts) == expected)
        #expect(try lines(on: kind, ["-n6", "*"], posting: posts) == posts)
        let asterisks = ["com.example.a", "com.example.*", "com.example"]
        #expect(try lines(on: kind, ["-n3", "com.example.*", "com.example"], posting: asterisks) == asterisks)
    }

    @Test(arguments: anyBusKind())
    func `-f continues until a signal`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["--follow", "a"])
        let center = bus.makeCenter()
        for _ in 0..<1_000 { try center.postOnceConnected("a") }
        #expect(try waiting.waitForOutputLines(1_000) == Array(repeating: "a", count: 1_000))
        waiting.send(signal: SIGINT)
        let result = try waiting.wait()
        #expect(result.status == 130)
        #expect(result.lines.count == 1_000)
    }

    @Test(arguments: anyBusKind())
    func `a self name is never heard from outside, not even by a pattern that matches it`(kind: BusKind) throws {
        #expect(try lines(on: kind, ["*"], posting: ["self.a", "b"]) == ["b"])
    }

    @Test(arguments: anyBusKind())
    func `600 names are all heard at once`(kind: BusKind) throws {
        let names = (1...600).map { "com.example.\($0)" }
        #expect(try lines(on: kind, ["--all"] + names, posting: names) == names)
    }

    @Test(arguments: anyBusKind(), ["drop", "coalesce", "hold", "deliver-immediately"])
    func `--suspension-behavior is accepted and changes nothing`(kind: BusKind, behavior: String) throws {
        let options = ["--suspension-behavior", behavior, "-n3"]
        #expect(try lines(on: kind, options + ["a"], posting: ["a", "a", "a"]) == ["a", "a", "a"])
    }

    @Test func `the help says that --suspension-behavior is ignored`() throws {
        let help = try run(productPath("notify-wait"), ["--help"]).output
        let text = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(text.contains("--suspension-behavior VALUE Accepted and ignored"))
    }

    @Test(arguments: anyBusKind())
    func `all notifications from one poster that arrived before the timeout count`(kind: BusKind) throws {
        // As many as are queued one by one, however slow the bus is.
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["-t", "10m", "-n", "4000", "a"])
        let result = try bus.script("yes a | head -4000 | notify-post -")
        #expect(result.status == 0)
        #expect(try waiting.wait().lines.count == 4_000)
    }
}
