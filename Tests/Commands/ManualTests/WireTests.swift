// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import NotifyCore

/// Compares the article on the wire format, which is for other languages, with the library.
@Suite struct WireTests {
    static let names = [
        "com.example.backup-done", "a", "a_b..c", ".", "3.1.4", "caf\u{e9}.\u{1f514}", "x y\t\"'\\",
        "com.apple.system.timezone", "org.notifybus.system.willsleep", String(repeating: "long-name.", count: 20),
        String(repeating: "\u{e9}", count: 255),
    ]

    private static let article = Result {
        try readFile("\(packageFolder)/Sources/Library/NotifyBus/NotifyBus.docc/WireFormat.md")
    }

    /// The program that the article shows, compiled.
    private static let program = Result {
        let lines = try article.get().split(separator: "\n", omittingEmptySubsequences: false)
        let code = lines.drop { $0 != "```c" }.dropFirst().prefix { $0 != "```" }.joined(separator: "\n")
        let path = try commandFolder() + "/wire"
        let flags = try run("pkg-config", ["--cflags", "--libs", "dbus-1"]).output
            .split(whereSeparator: \.isWhitespace).map(String.init)
        let compiler = isInstalled("cc") ? "cc" : "clang"
        let compiled = try run(
            compiler,
            ["-Wall", "-Wextra", "-Werror", "-x", "c", "-", "-o", path] + flags,
            input: code + "\n"
        )
        guard compiled.status == 0 else { throw TestSupportError("\(compiler): \(compiled.errorOutput)") }
        return path
    }

    /// Programs that know only the article.
    enum Stranger: CaseIterable {
        /// The article's own.
        case c
        case python

        /// The command, to be followed by `post NAME` or `wait NAME`.
        func command() throws -> [String] {
            switch self {
            case .c: [try WireTests.program.get()]
            case .python: [TestSupport.python, "\(WireTests.examples)/notifybus.py"]
            }
        }
    }

    static let examples = "\(packageFolder)/Examples/other-languages"
    static let cases = "\(packageFolder)/Bindings/conformance/cases/names.json"

    @Test(arguments: busKinds, Stranger.allCases)
    func `what a stranger's program posts is heard here`(kind: BusKind, stranger: Stranger) throws {
        let bus = try PrivateBus(kind)
        let center = NotifyCenter(bus: .address(bus.address))
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .everything, timeout: .seconds(25)) {
            heard.appendFromBus($0.string)
        }
        for name in WireTests.names {
            let command = try stranger.command()
            let result = try run(
                command[0],
                command.dropFirst() + ["post", name],
                environment: environment(bus: bus.address)
            )
            #expect(result.status == 0, "\(result.errorOutput)")
        }
        #expect(heard.wait(forCount: WireTests.names.count))
        #expect(heard.elements == WireTests.names)
        observation.cancel()
    }

    @Test(arguments: busKinds, Stranger.allCases)
    func `a stranger's program hears what is posted here, and nothing else`(kind: BusKind, stranger: Stranger) throws {
        let bus = try PrivateBus(kind)
        let center = NotifyCenter(bus: .address(bus.address))
        let ready = try run("mktemp", []).lines[0]
        defer { _ = unlink(ready) }
        for name in WireTests.names {
            let log = open(ready, O_WRONLY | O_TRUNC | O_CLOEXEC)
            let command = try stranger.command()
            let program = try start(
                command[0],
                command.dropFirst() + ["wait", name],
                environment: environment(bus: bus.address),
                input: .null,
                errorOutput: .descriptor(log)
            )
            close(log)
            #expect(try waitUntil { try readFile(ready) == "live\n" })
            try center.postOnceConnected(NotifyName(name + "x"))
            try center.postOnceConnected(NotifyName(name))
            let result = try program.wait(timeout: .patience)
            #expect(result.output == name + "\n")
            #expect(result.status == 0)
        }
    }

    @Test func `the article's table is right`() throws {
        let rows = try WireTests.article.get().split(separator: "\n").compactMap { line -> [String]? in
            let cells = line.split(separator: "`", omittingEmptySubsequences: false)
            guard cells.count == 5, cells[0] == "| ", cells[2] == " | ", cells[3].hasPrefix("org.") else { return nil }
            return [String(cells[1]), String(cells[3])]
        }
        #expect(rows.count == 5)
        for row in rows {
            #expect(WireFormat.interface(for: try NotifyName(row[0])) == row[1])
        }
    }

    /// Other implementations test themselves with the same cases.
    @Test func `the conformance cases are what the library does`() throws {
        let script = """
            import json, sys
            for case in json.load(open(sys.argv[1])):
                kind = "invalid" if "invalid" in case else "sent" if case.get("sent", True) else "kept"
                name = case["name"].encode(errors="surrogatepass").hex()
                print(kind, "0" + name, case.get("path"), case.get("interface"), case.get("owner", "anyone"))
            """
        let result = try run(python, ["-c", script, WireTests.cases])
        #expect(result.lines.count > 50, "\(result.errorOutput)")
        for line in result.lines {
            let fields = line.split(separator: " ").map(String.init)
            try #require(fields.count == 5)
            let digits = Array(fields[1].dropFirst())
            let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
                UInt8(String(digits[$0...$0 + 1]), radix: 16)
            }
            let name = bytes.withUnsafeBytes { try? NotifyName(utf8: $0) }
            #expect((name == nil) == (fields[0] == "invalid"), "\(line)")
            guard let name else { continue }
            #expect(name.staysInProcess == (fields[0] == "kept"), "\(line)")
            guard fields[0] == "sent" else { continue }
            #expect(WireFormat.path(for: name) == fields[2])
            #expect(WireFormat.interface(for: name) == fields[3])
            let owner =
                switch NotifyName.Scope(of: name.string) {
                case .owned(let user?): "\(user)"
                case .owned(nil): "None"
                default: "anyone"
                }
            #expect(owner == fields[4], "\(line)")
        }
    }

    @Test func `the example in Python passes them`() throws {
        let result = try run(
            python,
            ["\(WireTests.examples)/notifybus.py", "check", WireTests.cases]
        )
        #expect(result.output.contains("all right"), "\(result.output)\(result.errorOutput)")
        #expect(result.status == 0)
    }
}
