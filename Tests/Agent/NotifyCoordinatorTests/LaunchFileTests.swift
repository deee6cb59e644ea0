// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames
import Testing

/// The files of launch.d, and the commands in them.
@Suite struct LaunchFileTests {
    private func read(_ text: String) throws -> LaunchEntry {
        try LaunchFile.read(text, title: "entry", trust: .user)
    }

    private func complaint(_ text: String) -> LaunchFile.Fault? {
        do throws(LaunchFile.Fault) {
            _ = try LaunchFile.read(text, title: "entry", trust: .user)
            return nil
        } catch {
            return error
        }
    }

    @Test func `each setting is understood`() throws {
        let entry = try read(
            """
            # All there is.
            name = com.example.a
              name=com.example.b
            prefix = com.example.c
            prefix = com.example.d.
            name = com.example.e.*
            when = com.example.f
            when = ! com.example.g

            run = /usr/bin/printf "%s \\t" 'a b' c\\x20d ""
            on-busy = restart
            settle = 500ms
            limit = 3/1m
            environment = A=b c
            environment = B=
            from = anyone
            enabled = no
            """ + "\r\n"
        )
        #expect(entry.subjects.names == ["com.example.a", "com.example.b", "com.example.c"])
        #expect(
            entry.subjects.prefixes == [
                NamePrefix("com.example.c."), NamePrefix("com.example.d."), NamePrefix("com.example.e."),
            ]
        )
        #expect(
            entry.conditions == [
                .init("com.example.f", isNegated: false), .init("com.example.g", isNegated: true),
            ]
        )
        #expect(entry.action == .command(["/usr/bin/printf", "%s \t", "a b", "c d", ""]))
        #expect(entry.onBusy == .restart && entry.settle == 500_000_000 && entry.trust == .anyone && !entry.isEnabled)
        #expect(entry.limit == .init(starts: 3, window: 60_000_000_000))
        #expect(entry.environment == ["A=b c", "B="])
        let plain = try read("name = a\nstart = a@b.service")
        #expect(plain.onBusy == .queue && plain.settle == 0 && plain.trust == .user && plain.isEnabled)
        #expect(plain.limit == .init(starts: 10, window: 10_000_000_000))
        #expect(try read("name = a\nactivate = org.example.Editor").action == .activation("org.example.Editor"))
    }

    @Test(arguments: [
        ("name = a\nfoo = b\nstart = a.service", 2, "unknown setting 'foo'"),
        ("name = a\nstart", 2, "missing '='"),
        ("name =\nstart = a.service", 1, "is not a valid name"),
        ("name = self.a\nstart = a.service", 1, "never leaves its process"),
        ("prefix = .\nstart = a.service", 1, "is not a valid prefix"),
        ("name = .*\nstart = a.service", 1, "is not a valid prefix"),
        ("name = a\nwhen = !\nstart = a.service", 2, "is not a valid name"),
        ("name = a\nwhen = self.b\nstart = a.service", 2, "never leaves its process"),
        ("name = a\nwhen = !com.example.\u{1b}\nstart = a.service", 2, "control characters"),
        ("name = a\n" + String(repeating: "when = b\n", count: 17) + "start = a.service", 18, "too many conditions"),
        ("name = self.*\nstart = a.service", 1, "never leaves its process"),
        ("name = com.example.\u{1b}[2J\nstart = a.service", 1, "control characters"),
        ("prefix = com.example.a\u{85}\nstart = a.service", 1, "control characters"),
        ("name = a\nrun = true\nenvironment = A=b\u{7f}", 3, "control characters"),
        ("name = a\nstart = a", 2, "is not a unit"),
        ("name = a\nstart = a/b.service", 2, "is not a unit"),
        ("name = a\nstart = .service", 2, "is not a unit"),
        ("name = a\nstart = a@.service", 2, "is a template"),
        ("name = a\nrun = bin/true", 2, "neither an absolute path"),
        ("name = a\nrun = /bin/sh 'a", 2, "unbalanced quotes"),
        ("name = a\nrun = /bin/sh \\q", 2, "unknown escape"),
        ("name = a\nrun = /bin/sh \\000", 2, "invalid text"),
        ("name = a\nrun = /bin/sh \\400", 2, "unknown escape"),
        ("name = a\nrun = /bin/sh \\", 2, "trailing"),
        ("name = a\nrun = /bin/sh \\xff", 2, "invalid text"),
        ("name = a\nrun =", 2, "no program"),
        ("name = a\nrun = ''", 2, "no program"),
        ("name = a\nstart = @.service", 2, "is not a unit"),
        ("name = a\nstart = a.b", 2, "is not a unit"),
        ("name = a\nactivate = a", 2, "not a well-known bus name"),
        ("name = a\nactivate = a..b", 2, "not a well-known bus name"),
        ("name = a\nactivate = .a.b", 2, "not a well-known bus name"),
        ("name = a\nactivate = a.1b", 2, "not a well-known bus name"),
        ("name = a\nactivate = a.b/c", 2, "not a well-known bus name"),
        ("name = a\nactivate = a.b\non-busy = restart", 0, "with start or run"),
        ("name = a\nstart = a.service\nenvironment = A=b", 0, "only be used with run"),
        ("name = a\nrun = true\nenvironment = 1=b", 3, "is not a variable"),
        ("name = a\nstart = a.service\non-busy = each", 3, "is not one of queue, drop, restart"),
        ("name = a\nstart = a.service\nsettle = soon", 3, "is not a duration"),
        ("name = a\nstart = a.service\nsettle = 2d", 3, "longer than a day"),
        ("name = a\nstart = a.service\nlimit = 0/1s", 3, "is not a limit"),
        ("name = a\nstart = a.service\nlimit = 1001/1s", 3, "is not a limit"),
        ("name = a\nstart = a.service\nlimit = 5", 3, "is not a limit"),
        ("name = a\nstart = a.service\nlimit = 5/0s", 3, "needs a duration"),
        ("name = a\nstart = a.service\nfrom = me", 3, "is not one of user, anyone, root"),
        ("name = a\nstart = a.service\nenabled = 1", 3, "not yes or no"),
        ("name = self.a\nstart = a.service", 1, "never leaves its process"),
        ("prefix = self.a\nstart = a.service", 1, "never leaves its process"),
        ("name = a\nactivate = a..b", 2, "not a well-known bus name"),
        ("name = a\nactivate = .a.b", 2, "not a well-known bus name"),
        ("name = a\nstart = a.service\nstart = b.service", 3, "is given twice"),
        ("name = a\nstart = a.service\nrun = true", 0, "exactly one of"),
        ("name = a", 0, "exactly one of"),
        ("start = a.service", 0, "missing name"),
    ])
    func `each mistake is reported with its line`(text: String, line: Int, sentence: String) throws {
        let fault = try #require(complaint(text))
        #expect(fault.line == line && fault.text.contains(sentence), "\(fault)")
    }

    @Test(arguments: [
        ["true"], ["sh", "-c", "echo $A \"$B\""], ["/bin/printf", "%s\\n", "a b", "", "it's", "\"'\\\t\n"],
        ["é", "x y"],
    ]) func `what is shown as the command is one that yields the same words`(words: [String]) throws {
        #expect(try CommandLineText.words(of: CommandLineText.text(of: words)) == words)
    }

    @Test func `names of units and on the bus may be as long as systemd and the bus allow`() throws {
        let unit = String(repeating: "u", count: 255 - ".service".count) + ".service"
        #expect(try read("name = a\nstart = \(unit)").action == .unit(unit))
        #expect(complaint("name = a\nstart = u\(unit)")?.line == 2)
        let odd = "a:b-c_d.e\\x2d@f.mount"
        #expect(try read("name = a\nstart = \(odd)").action == .unit(odd))
        let name = "a." + String(repeating: "b", count: 253)
        #expect(try read("name = a\nactivate = \(name)").action == .activation(name))
        #expect(complaint("name = a\nactivate = \(name)b")?.line == 2)
        #expect(try read("name = a\nactivate = _a.b-c_1").action == .activation("_a.b-c_1"))
        #expect(try read("name = a\nstart = a.service\nlimit = 1000/1ms").limit.starts == 1_000)
    }

    @Test(
        arguments: [
            ("a  b\tc ", ["a", "b", "c"]), ("'a \"b' \"c 'd\"", ["a \"b", "c 'd"]), ("a'b'\"c\"d", ["abcd"]),
            ("'' \"\"", ["", ""]), ("'a\tb' \"c d\"", ["a\tb", "c d"]), ("\\x41\\101\\377", nil),
            ("\\x41\\101", ["AA"]), ("\\u00e9a \\U0001f600a", ["éa", "😀a"]),
            ("\\a\\b\\f\\n\\r\\t\\v\\s\\\\\\\"\\'", ["\u{7}\u{8}\u{c}\n\r\t\u{b} \\\"'"]), ("", []), ("   ", []),
        ] as [(String, [String]?)]
    ) func `a command line is split as systemd does`(text: String, words: [String]?) {
        #expect((try? CommandLineText.words(of: text)) == words)
    }

    @Test(arguments: [
        ("true", "true"), ("", "''"), ("a b", "'a b'"), ("it's", "\"it's\""), ("say \"it's\"", "\"say \\\"it's\\\"\""),
        ("a\\b", "'a\\\\b'"), ("\"", "'\"'"), ("a\tb\n", "'a\\tb\\n'"), ("\u{7f}", "'\u{7f}'"), ("é", "é"),
    ]) func `a word is shown in quotes if it must be`(word: String, text: String) {
        #expect(CommandLineText.text(of: [word]) == text)
    }
}
