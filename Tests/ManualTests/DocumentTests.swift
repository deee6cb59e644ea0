// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// Runs what the README, the pages of `Documentation/` and other documents show. ``SnippetTests`` and ``WireTests`` run
/// the programs of the library's articles.
@Suite struct DocumentTests {
    /// What stands between two fences.
    struct Block: CustomTestStringConvertible {
        let document: String
        let language: String
        let lines: [String]

        var testDescription: String { "\(document): \(lines.first ?? "")" }

        /// What a person types: what follows a prompt such as `$` or `one$`.
        var commands: [String] {
            lines.compactMap { line in prompt(of: line).map { String(line.dropFirst($0)) } }
        }

        /// What comes out.
        var output: [String] { lines.filter { prompt(of: $0) == nil } }

        private func prompt(of line: String) -> Int? {
            guard let end = line.firstRange(of: "$ ") else { return nil }
            let who = line[..<end.lowerBound]
            return who.allSatisfy(\.isLetter) ? who.count + 2 : nil
        }
    }

    /// How a block is tried.
    private enum Trial {
        /// This bash script gets the block's commands as `$1`, `$2`, …; it must print the block's output, whatever the numbers.
        case prints(String)
        /// The same, and only these words must be printed.
        case says(String, script: String)
        /// Each line is a command line that is understood, though there is nothing here that it could mean.
        case understood
        /// The compiler takes it after these lines.
        case compiles(after: String)
        /// Settings that the agent takes.
        case settings
        /// This target of the Makefile does what the block says.
        case target(String)
        /// The program of this service posts this name when a file system is nearly full, and only then.
        case service(posts: String)
        /// It lists files and folders below this one, and what they are.
        case layout(String)
        /// It shows something, and does nothing.
        case picture
    }

    /// By the document, and what the block begins with.
    private static let trials: [(document: String, beginning: String, trial: Trial)] = [
        (
            "README.md", "one$ notify-wait com.example.backup.done",
            .prints(
                """
                (eval "$1") >out &
                until [[ -s out ]]; do eval "$2"; sleep 0.05; done
                wait; cat out
                """
            )
        ),
        (
            "README.md", "$ notify-wait com.apple.screenIsUnlocked",
            .says(
                "mounted\nsynced\nclosed\n",
                script: """
                    # can NAME WORD - makes a program of this name, which says this.
                    can() { printf '#!/bin/sh\necho %s >>heard\n' "$2" >"$1"; chmod +x "$1"; }
                    can mount mounted; can sync-mail synced; can close-the-vault closed; PATH=$PWD:$PATH
                    while read -r _ command; do
                        observed=${command/notify-wait/notify-wait --ready-file ready}
                        [[ $command != *-f* ]] || observed="exec $observed"
                        eval "$observed" >/dev/null & observer=$!
                        until [[ -e ready ]]; do sleep 0.01; done
                        name=$(grep -oE '(com|org)[.][a-zA-Z._]+' <<<"$command")
                        count=$(cat heard 2>/dev/null | wc -l)
                        notify-post "$name"
                        until (($(cat heard 2>/dev/null | wc -l) > count)); do sleep 0.01; done
                        [[ $command != *-f* ]] || kill $observer
                        wait $observer; rm ready
                    done <<<"$LINES_OF_BLOCK"
                    cat heard
                    """
            )
        ),
        // What it calls is asked for what the block sends.
        (
            "Documentation/events.md", "busctl call org.freedesktop.login1",
            .says(
                "",
                script: """
                    export DBUS_SYSTEM_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS
                    ! command -v busctl || ! /usr/bin/python3 -c 'import dbusmock.templates.logind' 2>/dev/null || {
                        /usr/bin/python3 -m dbusmock --system --template logind >mock.log 2>&1 & mock=$!
                        path=/org/freedesktop/login1
                        until busctl call org.freedesktop.login1 $path org.freedesktop.DBus.Mock AddSession ssusb \
                            auto seat0 500 me true >log 2>&1
                        do sleep 0.1; ((SECONDS < 100)) && kill -0 $mock || { cat log mock.log; exit 1; }; done
                        eval "$LINES_OF_BLOCK"
                        locked=$(busctl get-property org.freedesktop.login1 $path/session/auto \
                            org.freedesktop.login1.Session LockedHint)
                        kill $mock
                        [[ $locked == "b true" ]]
                    }
                    """
            )
        ),
        ("Documentation/events.md", "[Service]", .service(posts: "com.apple.system.lowdiskspace")),
        // RelayTests give their sandboxes this permission.
        ("Documentation/sandboxes.md", "finish-args:", .target("test")),
        ("Documentation/versions.md", "$ make release", .target("release-test")),
        ("CONTRIBUTING.md", "$ make demo", .target("demo")),
        ("CONTRIBUTING.md", "Sources/", .layout(".")),
        ("Benchmarks/README.md", "$ make bench ", .target("bench")),
        ("Benchmarks/README.md", "bench  ", .layout("Benchmarks")),
        ("Sources/DarwinNotify/DarwinNotify.docc/DarwinNotify.md", "import DarwinNotify", .compiles(after: "")),
        ("README.md", "$ make build", .prints("eval \"$3\"")),
        (
            "README.md", "notify-post com.example.done",
            .says(
                "heard all\n",
                script: """
                    echo 'echo com.example.done' >generate-names
                    echo 'notify-post com.example.pong' >start-the-pinger
                    chmod +x generate-names start-the-pinger; PATH+=:$PWD
                    printf 'site:\\n\\t@touch made\\n' >Makefile
                    while IFS= read -r line; do
                        command=${line%%  *#*} command=${command%% #*}
                        case $command in
                            *"notify-post "*) notify-wait -t 120 com.example.done --then "$command" ;;
                            "notify-wait com.example.done") $command --then 'notify-post com.example.done' ;;
                            *--then*) eval "$command" ;;
                            *--*make*)
                                eval "exec ${command/ -- / --ready-file ready -- }" & observer=$!
                                until [[ -e ready ]]; do sleep 0.01; done
                                until [[ -e made ]]; do notify-post com.example.changed; sleep 0.05; done ;;
                            notify-state*)
                                notify-wait -f com.example.battery --ready-file battery & keeper=$!
                                until [[ -e battery ]]; do sleep 0.01; done
                                $command && [[ $(notify-state com.example.battery) == 80 ]] && kill $keeper ;;
                            # Here it is the process that waits for changes.
                            *pid:4711) ${command/4711/$observer} ;;
                            notify-top) $command --once ;;
                            *) false ;;
                        esac >>log 2>&1 || { cat log; echo "failed: $command"; exit 1; }
                    done <<<"$LINES_OF_BLOCK"
                    kill $observer
                    echo "heard all"
                    """
            )
        ),
        ("README.md", "dependencies: [", .target("dependents")),
        ("README.md", "import NotifyBus", .compiles(after: "")),
        ("README.md", "CFNotificationCenterPostNotification(", .compiles(after: "import DarwinNotify")),
        ("Documentation/installing.md", "$ make build", .target("install-test")),
        ("Documentation/installing.md", "export PATH=", .target("install-test")),
        ("Documentation/installing.md", "$ systemctl --user reload dbus", .target("install-test")),
        ("Documentation/installing.md", "$ notify-wait com.example.test --then", .prints("eval \"$1\"")),
        ("Documentation/installing.md", "<busconfig>", .target("policy")),
        (
            "Documentation/installing.md", "$ notify-wait --system",
            .prints("export DBUS_SYSTEM_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS; eval \"$1\" 2>&1")
        ),
        ("Documentation/installing.md", "$ make deb", .target("deb-test")),
        (
            "Documentation/lifecycle.md", "$ notify-agent &",
            .says(
                "version:",
                script:
                    "touch agent.conf; eval \"$1\"; eval \"$2\"; until notify-lifecycle status | grep version:; do :; done; kill %1 %2"
            )
        ),
        ("Documentation/lifecycle.md", "NotifyCenter.session.lifecycle.", .compiles(after: "import NotifyBus")),
        ("Documentation/lifecycle.md", "# These stay in the foreground.", .settings),
        ("Documentation/lifecycle.md", "$ notify-lifecycle status", .says("freezer ", script: "eval \"$1\"")),
        (
            "Documentation/lifecycle.md", "$ busctl --user call",
            .says("", script: "! command -v busctl || eval \"${1/--user/--address=$DBUS_SESSION_BUS_ADDRESS}\"")
        ),
        ("Documentation/lifecycle.md", "$ notify-lifecycle background app:", .understood),
        ("Documentation/lifecycle.md", "let center = NotifyCenter.session", .compiles(after: "import NotifyBus")),
        ("Documentation/lifecycle-protocol.md", "            agent ", .picture),
        ("Documentation/across-machines.md", "# /etc/mosquitto", .target("bridge-test")),
        ("Documentation/across-machines.md", "# ~/.config/notifybus/bridge.conf", .target("bridge-test")),
        ("Documentation/across-machines.md", "$ notify-bridge --check", .target("bridge-test")),
        (
            "Documentation/from-ios.md", "exec 9>",
            .says(
                "com.example.notes.changed\nhello\n",
                script: """
                    export file=$PWD/notes text=hello
                    notify-wait -t 120 com.example.notes.changed --then "$LINES_OF_BLOCK" && cat notes
                    """
            )
        ),
        (
            "Documentation/from-ios.md", "notify-wait -f com.example.notes.changed",
            .says(
                "hello\n",
                script: """
                    file=$PWD/notes; echo hello >notes
                    eval "${LINES_OF_BLOCK/-f/--ready-file ready}" & until [[ -e ready ]]; do sleep 0.01; done
                    notify-post com.example.notes.changed; wait
                    """
            )
        ),
        ("Documentation/from-ios.md", "$ mosquitto_pub", .target("bridge-test")),
        (
            "Documentation/from-ios.md", "$ notify-wait -f com.example.mail",
            .says(
                "fetched\n",
                script: """
                    printf '#!/bin/sh\necho fetched\n' >fetch-mail; chmod +x fetch-mail; PATH+=:$PWD
                    eval "${1/-f/--ready-file ready}" & until [[ -e ready ]]; do sleep 0.01; done
                    notify-post com.example.mail; wait
                    """
            )
        ),
        ("Documentation/porting.md", "dependencies: [", .target("dependents")),
        // PortingPage.swift of DarwinNotifyTests is this program, word for word, and runs as the page says.
        ("Documentation/porting.md", "import Foundation", .compiles(after: "")),
        ("Documentation/porting.md", "$ dbus-run-session -- sh -c '.build/debug/app", .target("test")),
        (
            "Documentation/porting.md", "CFNotificationCenter.onError",
            .compiles(after: "import DarwinNotify\nfunc log(_ text: String) { print(text) }")
        ),
    ]

    static let blocks = documents.flatMap { document -> [Block] in
        var blocks: [Block] = []
        var language: String?
        var lines: [String] = []
        let text = (try? run("cat", ["\(packageFolder)/\(document)"]).output) ?? ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                if let known = language {
                    blocks.append(Block(document: document, language: known, lines: lines))
                    language = nil
                } else {
                    language = String(line.dropFirst(3))
                    lines = []
                }
            } else if language != nil {
                lines.append(String(line))
            }
        }
        return blocks
    }

    private static let documents =
        [
            "README.md", "CONTRIBUTING.md", "SECURITY.md", "Benchmarks/README.md",
            "Sources/DarwinNotify/DarwinNotify.docc/DarwinNotify.md",
        ]
        + ((try? run("ls", ["\(packageFolder)/Documentation"]).lines) ?? [])
        .filter { $0.hasSuffix(".md") }.map { "Documentation/\($0)" }

    /// Markdown also takes what is indented for a block, and these tests don't.
    @Test(arguments: documents)
    func `a document fences its blocks`(document: String) throws {
        let lines = try run("cat", ["\(packageFolder)/\(document)"]).lines
        var isFenced = false
        for (before, line) in zip(lines, lines.dropFirst()) {
            if before.hasPrefix("```") { isFenced.toggle() }
            #expect(isFenced || !before.isEmpty || !line.hasPrefix("    "), "\(line)")
        }
    }

    @Test(arguments: blocks)
    func `what a document shows is what happens`(block: Block) throws {
        let trial = try #require(
            DocumentTests.trials.first {
                $0.document == block.document && block.lines.first?.hasPrefix($0.beginning) == true
            }?.trial,
            "Nobody has said how to try this block"
        )
        switch trial {
        case .picture: break
        case .service(let name): try checkService(block.lines, posts: name)
        case .layout(let folder): try checkLayout(block.lines, folder: folder)
        case .target(let target):
            let makefile = try run("cat", ["\(packageFolder)/Makefile", "\(packageFolder)/Scripts/install.mk"]).output
            #expect(makefile.contains("\n\(target):"))
        case .compiles(let lines):
            let result = try compile(lines + "\n" + block.lines.joined(separator: "\n"))
            #expect(result.status == 0, "\(result.errorOutput)")
        case .settings: try checkSettings(block.lines)
        case .understood:
            let (bus, agent) = try busWithAgent()
            defer { agent.send(signal: 15) }
            for command in block.commands {
                let result = try bus.script(command)
                #expect(result.status <= 1, "\(command): \(result.errorOutput)")
            }
        case .prints(let script):
            let result = try tried(block, by: script) { $0.lines.map(shape) == block.output.map(shape) }
            #expect(result.lines.map(shape) == block.output.map(shape), "\(result.errorOutput)")
        case .says(let words, let script):
            let result = try tried(block, by: script) { $0.output.contains(words) && $0.status == 0 }
            #expect(result.output.contains(words), "\(result.errorOutput)")
            #expect(result.status == 0, "\(result.output)\(result.errorOutput)")
        }
    }

    /// Every path that the block begins a line with, below the folder that is less indented, must exist.
    private func checkLayout(_ lines: [String], folder: String) throws {
        var parents = [(indent: -1, path: "\(packageFolder)/\(folder)")]
        for line in lines {
            let indent = line.prefix { $0 == " " }.count
            let text = line.dropFirst(indent)
            // What is indented further goes on with what the line before says.
            if text.isEmpty || indent > 8 { continue }
            while let last = parents.last, last.indent >= indent { parents.removeLast() }
            guard let parent = parents.last?.path else { continue }
            let words = text.split(separator: " ", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
            // Several may share a line, as folders or in a list.
            let isList = words.allSatisfy { $0.hasSuffix("/") || $0.hasSuffix(",") || $0 == words.last }
            let paths = (isList ? words : words.prefix(1)).map { $0.hasSuffix(",") ? $0.dropLast() : $0 }
            for path in paths {
                #expect(try run("test", ["-e", "\(parent)/\(path)"]).status == 0, "\(parent)/\(path)")
            }
            if let first = paths.first { parents.append((indent, "\(parent)/\(first)")) }
        }
    }

    /// Runs a block, several times if need be: it may give its commands less time than a busy machine takes.
    private func tried(
        _ block: Block,
        by script: String,
        until isRight: (CommandResult) -> Bool
    ) throws -> CommandResult {
        var result = try tried(block, by: script)
        for _ in 0..<9 where !isRight(result) { result = try tried(block, by: script) }
        return result
    }

    private func tried(_ block: Block, by script: String) throws -> CommandResult {
        let first = block.commands.first ?? block.lines.first ?? ""
        // Where the block starts an agent itself there is none yet.
        guard !first.hasPrefix("notify-agent") else {
            return try bus(for: block).script(inFolder(script), block.commands)
        }
        let (bus, agent) = try busWithAgent(bus(for: block))
        defer { agent.send(signal: 15) }
        return try bus.script(inFolder(script), block.commands, ["LINES_OF_BLOCK": block.lines.joined(separator: "\n")])
    }

    /// For a page that says what a policy does, a bus with the policy that the page shows.
    private func bus(for block: Block) throws -> PrivateBus {
        let lines = DocumentTests.blocks.filter { $0.document == block.document }.map(\.lines).joined()
        let denial = lines.first { $0.contains("<deny ") }
        guard block.lines.first?.contains("--system") == true, let denial else { return try PrivateBus(.daemon) }
        let policy = PrivateBus.openPolicy + "<policy context=\"mandatory\">\(denial)</policy>"
        return try PrivateBus(.daemon, policy: policy)
    }

    private func busWithAgent(_ bus: PrivateBus? = nil) throws -> (PrivateBus, RunningCommand) {
        let bus = try bus ?? PrivateBus(.daemon)
        let agent = try start(productPath("notify-agent"), ["--address", bus.address, "-q"], output: .null)
        try #require(try bus.script("until notify-lifecycle status; do :; done").status == 0)
        return (bus, agent)
    }

    private func inFolder(_ script: String) -> String {
        "cd \"$(mktemp -d)\" && trap 'rm -rf \"$PWD\"' EXIT\n" + script
    }

    /// A line without what is different each time: numbers, and how wide the columns are.
    private func shape(_ line: String) -> String {
        let words = line.split(whereSeparator: \.isWhitespace).map { word in
            word.allSatisfy { $0.isNumber || $0 == "s" } ? "N" : String(word)
        }
        return words.joined(separator: " ")
    }

    /// Has the compiler check a file against the modules under test.
    private func compile(_ text: String) throws -> CommandResult {
        let folder = try run("mktemp", ["-d"]).lines[0]
        defer { _ = try? run("rm", ["-r", folder]) }
        let products = String(try productPath("notify-commands").dropLast("/notify-commands".count))
        let flags = try run("pkg-config", ["--cflags-only-I", "dbus-1"]).output
            .split(whereSeparator: \.isWhitespace).flatMap { flag in ["-Xcc", "\(flag)"] as [String] }
        let script = "cat >\"$1/main.swift\" && shift && swiftc -typecheck \"$@\" \"\(folder)/main.swift\""
        return try run(
            "bash",
            [
                "-c", script, "bash", folder, "-swift-version", "6", "-I", "\(products)/Modules",
                "-Xcc", "-fmodule-map-file=\(products)/CLinux.build/module.modulemap",
                "-I", "\(packageFolder)/Sources/CDarwinNotify/include", "-I",
                "\(packageFolder)/Sources/CDBusShim/include",
            ] + flags,
            input: text + "\n",
            timeout: .patience
        )
    }
}
