// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct UsageTests {
    /// A command line that is wrong, and a part of the sentence about it.
    struct Mistake: CustomTestStringConvertible {
        let line: [String]
        let sentence: String
        var testDescription: String { line.joined(separator: " ") }

        init(_ line: String, _ sentence: String) {
            self.line = line.split(separator: " ").map { $0 == "''" ? "" : String($0) }
            self.sentence = sentence
        }
    }

    static let contradictions = [
        Mistake("notify-wait a -n 2 -f", "--count and --follow can't be used together"),
        Mistake("notify-wait a --all -n 2", "--all and --count can't be used together"),
        Mistake("notify-wait a --all -f", "--all and --follow can't be used together"),
        Mistake("notify-wait a --json --format %n", "--json and --format can't be used together"),
        Mistake("notify-wait a -q --json", "--quiet prints no names"),
        Mistake("notify-wait a -q --format %n", "--quiet prints no names"),
        Mistake("notify-wait a -q -0", "--quiet prints no names"),
        Mistake("notify-wait a --", "no command after '--'"),
        Mistake("notify-wait a --on-busy drop", "--on-busy requires a command after '--'"),
        Mistake("notify-wait a --session --system", "use only one of --session, --system and --address"),
        Mistake("notify-wait a --address unix:path=/x --system", "use only one of --session, --system and --address"),
        Mistake("notify-post a --system --session", "use only one of --session, --system and --address"),
        Mistake("notify-post a --address unix:path=/x --address unix:path=/y", "use only one of --session, --system"),
        Mistake("notify-post a - b -", "'-' can be given only once"),
    ]

    static let values = [
        Mistake("notify-wait a -n 0", "option '-n': '0' is not a count; use a whole number, 1 or greater"),
        Mistake("notify-wait a -n -3", "option '-n': '-3' is not a count"),
        Mistake("notify-wait a --count=two", "option '--count': 'two' is not a count"),
        Mistake("notify-wait a -n99999999999999999999", "is not a count"),
        Mistake("notify-wait a -t soon", "option '-t': 'soon' is not a duration; use a number with ms, s, m, h or d"),
        Mistake("notify-wait a -t 5w", "'5w' is not a duration"),
        Mistake("notify-wait a -t ''", "'' is not a duration"),
        Mistake("notify-wait a -t 1000000h", "'1000000h' is longer than a hundred years"),
        Mistake(
            "notify-wait a --on-busy wait -- b",
            "option '--on-busy' must be queue, each, drop or restart, not 'wait'"
        ),
        Mistake(
            "notify-wait a --suspension-behavior no",
            "must be drop, coalesce, hold or deliver-immediately, not 'no'"
        ),
        Mistake(
            "notify-wait a --format %x",
            "option '--format': unknown sequence '%x'; the known ones are %n, %t, %c, %s and %%"
        ),
        Mistake("notify-wait a --format 100%", "incomplete sequence '%' at the end"),
        Mistake(#"notify-wait a --format \q"#, #"unknown sequence '\q'; the known ones are \n, \t, \0 and \\"#),
        Mistake(#"notify-wait a --format x\"#, #"incomplete sequence '\' at the end"#),
        Mistake("notify-wait a --ready-fd 2", "'2' is not a usable file descriptor"),
        Mistake("notify-wait a --ready-fd out", "'out' is not a usable file descriptor"),
        Mistake("notify-wait a --ready-fd 17", "file descriptor 17 is not open; open it, as in '17>ready'"),
        Mistake("notify-wait a --ready-file ''", "the file name is empty"),
        Mistake("notify-post a --address ''", "expected an address such as unix:path="),
        Mistake("notify-wait a --all=yes", "option '--all' doesn't take a value"),
        Mistake("notify-wait a --count", "option '--count' requires a value, as in '--count N'"),
        Mistake("notify-wait a -t", "option '-t' requires a value, as in '-t DURATION'"),
    ]

    static let operands = [
        Mistake("notify-post", "no name given; try 'notify-post com.example.done'"),
        Mistake("notify-post --", "no name given"),
        Mistake("notify-wait", "no name given; try 'notify-wait com.example.done'"),
        Mistake("notify-wait -- true", "no name given"),
        Mistake(
            "notify-wait " + String(repeating: "x", count: 511) + ".*",
            "is not valid: at most 511 bytes can come before the '*'"
        ),
        Mistake("notify-post a self.x", "'self.x' reaches no other program, so nothing was posted: a name that begins"),
        Mistake("notify-post -- self.", "'self.' reaches no other program, so nothing was posted"),
        Mistake("notify-wait a self.x", "'self.x' reaches no other program: a name that begins with 'self.' stays"),
        Mistake("notify-wait self.*", "'self.*' matches nothing from other programs: a name that begins"),
        Mistake("notify-wait * self.deep.*", "'self.deep.*' matches nothing from other programs"),
        Mistake("notify-state set self.x 5", "'self.x' reaches no other program"),
        Mistake("notify-state watch self.x", "'self.x' reaches no other program"),
        Mistake("notify-state set a -5", "'-5' is not a state; use a whole number from 0 to 18446744073709551615"),
        Mistake("notify-state -5", "unknown option '-5'; see 'notify-state --help'"),
        Mistake("notify-state set -5 5", "unknown option '-5'"),
        Mistake("notify-state wait a -5", "unknown option '-5'"),
    ]

    static let strangers = [
        Mistake("notify-wait a --timout 5", "unknown option '--timout'; did you mean '--timeout'?"),
        Mistake("notify-wait a --tiemout=5", "did you mean '--timeout'?"),
        Mistake("notify-wait a --Follow", "did you mean '--follow'?"),
        Mistake("notify-wait a --suspension", "did you mean '--suspension-behavior'?"),
        Mistake("notify-wait a --ready-fiel f", "did you mean '--ready-file'?"),
        Mistake("notify-post a --adress x", "did you mean '--address'?"),
        Mistake("notify-post a --vebose", "did you mean '--verbose'?"),
        Mistake("notify-wait a --elephant", "unknown option '--elephant'; see 'notify-wait --help'"),
        Mistake("notify-post a --x", "unknown option '--x'; see 'notify-post --help'"),
        Mistake("notify-post a -z", "unknown option '-z'; see 'notify-post --help'"),
        Mistake("notify-post a -n 3", "unknown option '-n'"),
        Mistake("notify-wait a -fqz", "unknown option '-z'"),
        Mistake("notify-wait a -\u{e9}", "unknown option '-\u{e9}'"),
        Mistake("notify-wait a --\u{1b}[31m", #"unknown option '--\x1b[31m'"#),
    ]

    @Test(arguments: contradictions + values + operands + strangers)
    func `a mistake is 64 and one sentence that says what to write, without a bus`(mistake: Mistake) throws {
        let result = try run(
            productPath(mistake.line[0]),
            Array(mistake.line.dropFirst()),
            environment: ["DBUS_SESSION_BUS_ADDRESS": nowhere]
        )
        #expect(result.status == 64)
        #expect(result.output == "")
        #expect(result.errorOutput.hasPrefix("\(mistake.line[0]): "))
        #expect(result.errorOutput.contains(mistake.sentence))
        #expect(result.errorOutput.utf8.filter { $0 == UInt8(ascii: "\n") }.count == 1)
        #expect(result.errorOutput.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 })
    }

    @Test(arguments: anyBusKind())
    func `options may be written together, before and after names`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let lines = [
            ["a", "-fqt0"], ["-ft", "0", "a"], ["-vfq", "-t0", "a"], ["a", "--follow", "--timeout=0s", "b"],
        ]
        for line in lines {
            #expect(try bus.run("notify-wait", line).status == 2)
        }
        #expect(try bus.run("notify-post", ["-q", "a", "-v", "b"]).errorOutput == "notify-post: posted 2 names\n")
        // The last of -q and -v is the one that counts.
        #expect(try bus.run("notify-post", ["-v", "a", "-q", "b"]).errorOutput == "")
    }

    @Test func `a path and an address that are not UTF-8 are taken as they are or refused, never changed`() throws {
        let folder = try TemporaryFolder()
        let bus = try PrivateBus(busKinds[0])
        let result = try bus.script(
            #"cd "$1" && notify-wait -t 0 --ready-file $'caf\xe9' a; ls -b; notify-post --address $'unix:path=\xff' a"#,
            [folder.path]
        )
        #expect(result.output == "caf\\351\n")
        #expect(result.status == 64)
    }
}
