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
        try run("cat", ["\(packageFolder)/Sources/NotifyBus/NotifyBus.docc/WireFormat.md"]).output
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

    @Test(arguments: BusKind.available)
    func `what the article's program posts is heard here`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = NotifyCenter(bus: .address(bus.address))
        let heard = Recorder<String>()
        let observation = try center.addObserver(for: .everything) { heard.appendFromBus($0.string) }
        for name in WireTests.names {
            let result = try run(WireTests.program.get(), ["post", name], environment: environment(bus: bus.address))
            #expect(result.status == 0, "\(result.errorOutput)")
        }
        #expect(heard.wait(forCount: WireTests.names.count))
        #expect(heard.elements == WireTests.names)
        observation.cancel()
    }

    @Test(arguments: BusKind.available)
    func `the article's program hears what is posted here, and nothing else`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = NotifyCenter(bus: .address(bus.address))
        let ready = try run("mktemp", []).lines[0]
        defer { _ = unlink(ready) }
        for name in WireTests.names {
            let log = open(ready, O_WRONLY | O_TRUNC | O_CLOEXEC)
            let program = try start(
                WireTests.program.get(),
                ["wait", name],
                environment: environment(bus: bus.address),
                input: .null,
                errorOutput: .descriptor(log)
            )
            close(log)
            #expect(try waitUntil { try run("cat", [ready]).output == "live\n" })
            try center.post(NotifyName(name + "x"))
            try center.post(NotifyName(name))
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
}
