// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// `notify-agent --check`, which reads the files of launch.d.
@Suite struct LaunchCheckTests {
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
        let examples = packageFolder + "/Examples/launch.d"
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
