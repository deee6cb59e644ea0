// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

/// The files of launch.d, and `notify-agent --check`, which reads them.
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
        ("name = a\nrun =", 2, "no program"),
        ("name = a\nactivate = a", 2, "not a well-known bus name"),
        ("name = a\nactivate = a.b\non-busy = restart", 0, "with start or run"),
        ("name = a\nstart = a.service\nenvironment = A=b", 0, "only be used with run"),
        ("name = a\nrun = true\nenvironment = 1=b", 3, "is not a variable"),
        ("name = a\nstart = a.service\non-busy = each", 3, "is not one of queue, drop, restart"),
        ("name = a\nstart = a.service\nsettle = soon", 3, "is not a duration"),
        ("name = a\nstart = a.service\nsettle = 2d", 3, "longer than a day"),
        ("name = a\nstart = a.service\nlimit = 0/1s", 3, "is not a limit"),
        ("name = a\nstart = a.service\nlimit = 5", 3, "is not a limit"),
        ("name = a\nstart = a.service\nlimit = 5/0s", 3, "needs a duration"),
        ("name = a\nstart = a.service\nfrom = me", 3, "is not one of user, anyone, root"),
        ("name = a\nstart = a.service\nenabled = 1", 3, "not yes or no"),
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

    @Test func `--check prints each entry and each mistake, and exits with 1 if there is one`() throws {
        let folder = "/tmp/notifybus-launch-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        defer { _ = try? run("rm", ["-rf", folder]) }
        func shell(_ script: String) throws {
            let result = try run("/bin/sh", ["-c", "cd \"$0\" && " + script, folder])
            try #require(result.status == 0, "\(result.errorOutput)")
        }
        try run("mkdir", ["-p", folder])
        try shell("mkdir -p own/notifybus/launch.d first/notifybus/launch.d data/notifybus/launch.d")
        func check() throws -> (status: Int32, lines: [String]) {
            let result = try run(
                productPath("notify-agent"),
                ["--check", "--address", "unix:path=/nonexistent/bus"],
                environment: withoutDesktop.merging([
                    "XDG_CONFIG_HOME": "\(folder)/own", "XDG_CONFIG_DIRS": "relative:\(folder)/first",
                    "XDG_DATA_DIRS": "\(folder)/data",
                ]) { $1 }
            )
            #expect(result.errorOutput.isEmpty)
            return (result.status, result.output.split(separator: "\n").map { String($0) })
        }
        #expect(try check() == (0, []))
        // The first folder counts; an empty file and a link to /dev/null mask.
        try shell(
            """
            printf 'name = a\\nstart = own.service\\n' >own/notifybus/launch.d/both.conf
            printf 'name = a\\nstart = data.service\\n' >data/notifybus/launch.d/both.conf
            printf 'prefix = b\\nrun = true\\n' >data/notifybus/launch.d/other.conf
            printf 'broken\\n' >data/notifybus/launch.d/empty.conf
            : >first/notifybus/launch.d/empty.conf
            printf 'broken\\n' >data/notifybus/launch.d/link.conf
            ln -s /dev/null own/notifybus/launch.d/link.conf
            printf 'broken\\n' >own/notifybus/launch.d/ignored
            """
        )
        var found = try check()
        #expect(found.status == 0)
        #expect(
            found.lines == [
                "\(folder)/own/notifybus/launch.d/both.conf: a → start own.service",
                "\(folder)/data/notifybus/launch.d/other.conf: b, b.* → run true",
            ]
        )
        // Files that others can write to, that are not regular or too long are skipped; the rest is read.
        try shell(
            """
            printf 'name = a\\nstart\\n' >own/notifybus/launch.d/wrong.conf
            printf 'name = a\\nstart = a.service\\n' >own/notifybus/launch.d/open.conf
            chmod o+w own/notifybus/launch.d/open.conf
            printf 'name = a\\nstart = a.service\\n' >own/notifybus/launch.d/group.conf
            chmod 664 own/notifybus/launch.d/group.conf
            printf 'name = a\\nstart = a.service\\n' >"$(printf 'own/notifybus/launch.d/a\\nb.conf')"
            printf 'name = a\\nrun = /nonexistent/program\\n' >own/notifybus/launch.d/nowhere.conf
            printf 'name = a\\nrun = no-such-program x\\n' >own/notifybus/launch.d/nothing.conf
            printf 'name = a\\nrun = /tmp\\n' >own/notifybus/launch.d/directory.conf
            mkfifo own/notifybus/launch.d/pipe.conf
            head -c 70000 /dev/zero | tr '\\0' '#' >own/notifybus/launch.d/long.conf
            printf 'fucos = all\\n' >own/notifybus/agent.conf
            """
        )
        found = try check()
        #expect(found.status == 1)
        let place = "\(folder)/own/notifybus"
        let first = found.lines.removeFirst()
        #expect(first.hasPrefix("\(place)/agent.conf:1: unknown setting 'fucos'"))
        #expect(
            found.lines == [
                "\(place)/launch.d/a\\nb.conf: the name of the file has control characters or '\\'",
                "\(place)/launch.d/both.conf: a → start own.service",
                "\(place)/launch.d/directory.conf: there is no program '/tmp'",
                "\(place)/launch.d/group.conf: writable by others; use chmod go-w",
                "\(place)/launch.d/long.conf: larger than 64 KB",
                "\(place)/launch.d/nothing.conf: there is no program 'no-such-program' in "
                    + "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "\(place)/launch.d/nowhere.conf: there is no program '/nonexistent/program'",
                "\(place)/launch.d/open.conf: writable by others; use chmod go-w",
                "\(folder)/data/notifybus/launch.d/other.conf: b, b.* → run true",
                "\(place)/launch.d/pipe.conf: not a regular file",
                "\(place)/launch.d/wrong.conf:2: missing '=' in 'start'",
            ]
        )
        if geteuid() == 0 {
            try shell("chown 12345 own/notifybus/launch.d/both.conf")
            #expect(try check().lines[2].contains("owned by user 12345, not by user 0 or root"))
        }
    }

    @Test func `the examples are valid entries`() throws {
        let folder = "/tmp/notifybus-launch-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        defer { _ = try? run("rm", ["-rf", folder]) }
        let examples = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/Examples/launch.d"
        try run("mkdir", ["-p", "\(folder)/notifybus"])
        try run("cp", ["-r", examples, "\(folder)/notifybus"])
        let result = try run(
            productPath("notify-agent"),
            ["--check"],
            environment: withoutDesktop.merging(["XDG_CONFIG_HOME": folder, "XDG_DATA_DIRS": "/nonexistent"]) { $1 }
        )
        #expect(result.status == 0, "\(result.output)")
        let count = try run("/bin/sh", ["-c", "ls \"$0\"/*.conf | wc -l", examples]).output.filter(\.isNumber)
        #expect(result.lines.count == Int(count) && !result.lines.isEmpty)
    }
}
