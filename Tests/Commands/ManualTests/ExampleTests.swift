// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Runs the examples of the pages, and other blocks in them. CProgramTests run notify(3)'s programs, and the
/// bridge's tests what notify-bridge(8) shows.
@Suite struct ExampleTests {
    struct Example: CustomTestStringConvertible {
        let page: String
        let script: String
        var testDescription: String { "\(page): \(script)" }
    }

    /// How an example is tried. Each is a bash script that finds the example in `$1`.
    private enum Trial {
        /// While it runs, this command is repeated until the output contains this text.
        case poked(String, says: String)
        /// It prints this if this `notify-wait` is already there to answer it.
        case answered(String, says: String)
        /// It makes a `notify-wait` with these options print this as its last line.
        case heard(String, last: String)
        /// The agent accepts it as its configuration.
        case settings
        /// The agent accepts it as an entry of `launch.d`.
        case launch
        /// The agent accepts it as its `nap.conf`.
        case naps
        /// The program of this service posts this name when a file system is nearly full, and only then.
        case service(posts: String)
        /// Its command line is valid; more can't be checked here.
        case understood
        /// CI runs it as it stands in the copy of a system that `make deb-test` boots.
        case inSystemCopy
        /// It needs something that is not available here.
        case leftOut
    }

    /// By the beginning of an example.
    private static let trials: [(beginning: String, trial: Trial)] = [
        ("notify-post com.example.backup.done", .heard("com.example.backup.done", last: "com.example.backup.done")),
        ("seq ", .heard("-n 1000 'com.example.step.*'", last: "com.example.step.1000")),
        ("inotifywait ", .leftOut),
        (
            "notify-wait com.example.backup.done",
            .poked("notify-post com.example.backup.done", says: "safe to switch off")
        ),
        ("make site &&", .heard("com.example.build.done", last: "com.example.build.done")),
        ("notify-wait -t 1h", .poked("notify-post com.example.build.failed", says: "com.example.build.failed\n")),
        (
            "notify-wait -f 'com.example.build.*'",
            .poked("notify-post com.example.build.done", says: " com.example.build.done\n")
        ),
        ("notify-wait -f com.example.alive", .poked("", says: "silent\n")),
        ("notify-wait -f com.example.changed", .poked("notify-post com.example.changed", says: "built\n")),
        ("notify-wait -f -t 10s", .poked("notify-post com.example.tick", says: "\n")),
        (
            "notify-wait -f --hold",
            .poked("notify-post org.notifybus.system.willsleep", says: "built\n")
        ),
        ("notify-post --system", .heard("--system com.example.disk", last: "com.example.disk")),
        ("notify-wait --system -f", .poked("notify-post --system com.example.disk", says: "built\n")),
        ("until notify-wait", .poked("", says: "built\n")),
        ("while notify-wait", .poked("notify-post com.example.pong", says: "round\n")),
        (
            "notify-wait -f com.example.ping",
            .poked(
                "notify-wait -t 0.5 com.example.pong --then 'notify-post com.example.ping' >>out",
                says: "com.example.pong\n"
            )
        ),
        (
            "notify-wait -f --exit-with-bus --settle",
            .poked("notify-post com.example.build.done", says: " com.example.build.done\n")
        ),
        ("notify-wait -f com.example.queue", .poked("notify-post com.example.queue.added", says: "built\n")),
        ("sqlite3 ", .heard("com.example.tasks", last: "com.example.tasks")),
        (
            "notify-wait -f com.example.tasks",
            .poked("notify-post com.example.tasks", says: "sweep\n")
        ),
        (
            "notify-wait -f com.example.config",
            .poked("notify-post com.example.config.changed", says: "reloaded\n")
        ),
        // The mistake that the page warns about.
        ("notify-wait com.example.pong &", .leftOut),
        (
            "notify-wait com.example.pong",
            .answered(
                "notify-wait --ready-file ready -f com.example.ping -- notify-post com.example.pong",
                says: "com.example.pong\n"
            )
        ),
        ("notify-wait -f 'com.example.*' | ssh", .inSystemCopy),
        ("notify-wait --all", .poked("notify-post com.example.a com.example.b", says: "com.example.b\n")),
        (
            "notify-wait com.example.site.changed --",
            .poked("notify-post com.example.site.changed", says: "make ended with 0\n")
        ),
        ("notify-wait -f --json", .poked("notify-post com.example.b", says: "\"name\":\"com.example.b\"")),
        (
            "notify-wait com.example.done",
            .poked("touch done; notify-post com.example.done", says: "com.example.done\n")
        ),
        ("notify-wait --retry", .poked("notify-post com.example.backup.done", says: "safe to switch off")),
        ("while sleep 60", .leftOut),
        ("* * * * *", .inSystemCopy),
        ("runuser -u alice", .inSystemCopy),
        (
            "notify-wait -f --exit-with-bus com.example.site.changed",
            .poked("notify-post com.example.site.changed", says: "built\n")
        ),
        ("notify-wait --literal", .poked("notify-post 'com.example.*'", says: "com.example.*\n")),
        ("dbus-run-session", .poked("", says: "com.example.a\n")),
        ("notify-wait -f 'com.example.*' --format", .poked("notify-post com.example.b", says: " com.example.b\n")),
        ("notify-wait -f '*'", .poked("notify-post com.example.b", says: " com.example.b\n")),
        ("notify-wait -f com.example.site.changed", .poked("notify-post com.example.site.changed", says: "built\n")),
        ("notify-wait -f com.example.tick", .poked("notify-post com.example.tick", says: "heard com.example.tick\n")),
        ("notify-lifecycle list", .poked("", says: "APPLICATION")),
        ("notify-lifecycle background app:", .understood),
        ("notify-lifecycle suspend --freeze", .understood),
        (
            "notify-lifecycle watch",
            .poked("notify-wait -t 0.5 a & notify-lifecycle background $!; wait $!", says: "\"background\"")
        ),
        ("notify-lifecycle release", .poked("", says: "released")),
        ("notify-state com", .poked("", says: "0\n")),
        ("notify-state set", .understood),
        ("notify-state add", .understood),
        ("notify-state swap", .understood),
        (
            "notify-state wait",
            .poked("notify-state set com.example.ready 1 --post", says: "ready\n")
        ),
        ("notify-state watch", .poked("notify-state set com.example.battery 80", says: "at 80\n")),
        (
            "notify-wait --system NAME",
            .poked("", says: "NAME\n")
        ),
        ("# These stay in the foreground.", .settings),
        ("# ~/.config/notifybus/launch.d", .launch),
        ("# Steam and its games sleep", .naps),
        ("[Service]", .service(posts: "com.apple.system.lowdiskspace")),
        ("notify-top --once", .poked("notify-post com.example.busy", says: "com.example.busy")),
        // Without a terminal it says so.
        ("notify-top", .poked("", says: "not a terminal")),
        ("notify-agent", .poked("notify-lifecycle status", says: "ready")),
        ("dbus-send", .heard("com.example.backup-done", last: "com.example.backup-done")),
        ("dbus-monitor", .poked("notify-post com.apple.system.c", says: "/reserved; interface=org.notifybus.n.com.")),
    ]

    static let examples =
        (CommandFacts.all.map { ($0.name, $0.page) } + [
            ("notifybus", "man/notifybus.7"), ("notifybus-recipes", "man/notifybus-recipes.7"),
            ("notifybus-events", "man/notifybus-events.7"), ("notifybus-launch", "man/notifybus-launch.5"),
        ])
        .flatMap { name, page in
            scripts(of: (try? Manuals.text(page)) ?? "").map { Example(page: name, script: $0) }
        }

    /// The text between `.EX` and `.EE`.
    private static func scripts(of page: String) -> [String] {
        var scripts: [String] = []
        var script: [Substring]?
        for line in page.split(separator: "\n") {
            if line == ".EX" {
                script = []
            } else if line == ".EE", let lines = script {
                scripts.append(plain(lines.joined(separator: "\n")))
                script = nil
            } else {
                script?.append(line)
            }
        }
        return scripts
    }

    /// Enters a folder with what examples mention.
    private let folder = """
        cd "$(mktemp -d)" && trap 'rm -rf "$PWD"' EXIT
        printf 'site:\\n\\t@echo built\\n' >Makefile
        printf '#!/bin/sh\\necho sweep\\n' >show-tasks
        printf '#!/bin/sh\\n[ "$*" != "-HUP -x exampled" ] || echo reloaded\\n' >pkill
        printf '#!/bin/sh\\n[ "$1" = tasks.db ]\\n' >sqlite3
        chmod +x show-tasks pkill sqlite3; PATH=$PWD:$PATH
        """

    @Test(arguments: examples)
    func `an example works as it is printed`(example: Example) throws {
        let trial = try #require(
            ExampleTests.trials.first { example.script.hasPrefix($0.beginning) }?.trial,
            "The table above doesn't say how to try this example."
        )
        let bus = try PrivateBus(.daemon)
        let agent =
            ["notify-lifecycle", "notify-state", "notifybus-recipes"].contains(example.page)
            ? try start(productPath("notify-agent"), ["--address", bus.address, "-q"], output: .null) : nil
        defer { agent?.send(signal: 15) }
        if agent != nil { try #require(try bus.script("until notify-lifecycle status; do :; done").status == 0) }
        switch trial {
        case .leftOut: break
        case .inSystemCopy:
            let source = try readFile("\(packageFolder)/Scripts/check/deb")
            #expect(source.contains("man/\(example.page).7.in"))
            #expect(try readFile("\(packageFolder)/.ci/run").contains("make deb-test\n"))
        case .settings: try checkSettings(example.script.split(separator: "\n").map(String.init))
        case .service(let name): try checkService(example.script.split(separator: "\n").map(String.init), posts: name)
        case .launch:
            let script = """
                cd "$(mktemp -d)" && trap 'rm -rf "$PWD"' EXIT
                export XDG_CONFIG_HOME=$PWD
                mkdir -p notifybus/launch.d && cat >notifybus/launch.d/entry.conf
                notify-agent 2>/dev/null & until notify-lifecycle status; do :; done >/dev/null
                notify-lifecycle launches; kill %1
                """
            let result = try bus.script(script, input: example.script + "\n")
            let entry = try #require(result.lines.last, "\(result.errorOutput)")
            #expect(entry.hasPrefix("entry ") && !entry.contains("entry.conf"))
        case .naps:
            let script = """
                cd "$(mktemp -d)" && trap 'rm -rf "$PWD"' EXIT
                mkdir notifybus && cat >notifybus/nap.conf
                XDG_CONFIG_HOME=$PWD notify-agent --check --config /dev/null
                """
            let result = try bus.script(script, input: example.script + "\n")
            #expect(result.status == 0 && result.output.isEmpty, "\(result.output)\(result.errorOutput)")
        case .understood:
            let result = try bus.script(example.script)
            #expect(result.status == 1, "\(result.errorOutput)")
            #expect(!result.errorOutput.contains("--help"))
        case .heard(let options, let last):
            let script = "\(folder)\nnotify-wait -t 120 \(options) --then \"$1\""
            let result = try bus.script(script, [example.script], ["DBUS_SYSTEM_BUS_ADDRESS": bus.address])
            #expect(result.lines.last == last, "\(result.errorOutput)")
        case .answered(let partner, let words):
            let script = """
                cd "$(mktemp -d)" && trap 'kill %1; rm -rf "$PWD"' EXIT
                \(partner) >answers &
                until [[ -e ready ]]; do sleep 0.01; done
                # The example gives its partner less time than it may need on a busy machine.
                for _ in {1..50}; do ! bash -c "$1" || break; done
                """
            let result = try bus.script(script, [example.script])
            #expect(result.output == words, "\(result.errorOutput)")
        case .poked(let poke, let words):
            let script = """
                \(folder)
                setsid bash -c "$1" >out 2>&1 &
                example=$!
                for ((i = 0; i < 1500; i++)); do
                    ! grep -qF -- "$2" out || break
                    { \(poke.isEmpty ? ":" : poke); } >/dev/null 2>&1
                    sleep 0.05
                done
                kill -- -$example
                cat out
                """
            let result = try bus.script(
                script,
                [example.script, words.filter { $0 != "\n" }],
                ["DBUS_SYSTEM_BUS_ADDRESS": bus.address]
            )
            #expect(result.output.contains(words), "\(result.errorOutput)")
        }
    }

    /// Roff as a reader sees it.
    private static func plain(_ text: String) -> String {
        var text = text
        for (escape, plain) in [
            ("\\-", "-"), ("\\(aq", "'"), ("\\(ha", "^"), ("\\(ti", "~"), ("\\&", ""), ("\\e", "\\"),
        ] {
            text = text.split(separator: escape, omittingEmptySubsequences: false).joined(separator: plain)
        }
        return text
    }
}
