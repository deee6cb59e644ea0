// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Completions in bash, from the function that bash calls when the user presses TAB.
@Suite struct BashTests {
    /// What bash offers for a line that it has split into these words.
    private func offers(
        _ words: [String],
        line: String,
        bus: String = "unix:path=/nonexistent",
        prelude: String = ""
    ) throws -> [String] {
        let script = """
            \(prelude)
            source "$1"
            COMP_LINE=$2 COMP_POINT=${#2}
            shift 2
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            "_${1//-/_}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let command = try #require(CommandFacts.all.first { $0.name == words[0] })
        let result = try run(
            "bash",
            ["--norc", "-c", script, "bash", Manuals.path(command.bash), line] + words,
            environment: environment(bus: bus)
        )
        #expect(result.errorOutput == "")
        return result.lines.filter { !$0.isEmpty }
    }

    private func offers(_ line: String) throws -> [String] {
        try offers(line.split(separator: " ", omittingEmptySubsequences: false).map(String.init), line: line)
    }

    @Test(arguments: CommandFacts.all)
    func `bash can read it`(command: CommandFacts) throws {
        #expect(try run("bash", ["-n", Manuals.path(command.bash)]).status == 0)
    }

    @Test(.enabled(if: isInstalled("shellcheck"), "shellcheck is not installed."), arguments: CommandFacts.all)
    func `shellcheck has no complaints`(command: CommandFacts) throws {
        #expect(try run("shellcheck", [Manuals.path(command.bash)]).output == "")
    }

    @Test(arguments: CommandFacts.all)
    func `every option is offered`(command: CommandFacts) throws {
        let verb = command.subcommands.first.map { $0 + " " } ?? ""
        #expect(Set(try offers("\(command.name) \(verb)-")) == Set(command.spellings))
    }

    @Test(arguments: CommandFacts.all)
    func `every word that an option takes is offered, however it is written`(command: CommandFacts) throws {
        for (option, words) in command.choices {
            #expect(try offers("\(command.name) \(option) ") == words)
            #expect(try offers([command.name, option, "="], line: "\(command.name) \(option)=") == words)
            let (first, word) = (String(words[0].prefix(1)), words[0])
            #expect(
                try offers([command.name, option, "=", first], line: "\(command.name) \(option)=\(first)").contains(
                    word
                )
            )
        }
    }

    @Test func `files, commands and subcommands are offered where they belong, and nothing elsewhere`()
        throws
    {
        #expect(try offers("notify-wait --ready-file /etc/os-rel") == ["/etc/os-release"])
        #expect(try offers("notify-agent --config /etc/os-rel") == ["/etc/os-release"])
        #expect(try offers("notify-wait --then notify-po").contains("notify-post"))
        #expect(try offers("notify-wait a -- notify-po").contains("notify-post"))
        #expect(try offers("notify-wait a -- ls /etc/os-rel") == ["/etc/os-release"])
        #expect(try offers("notify-lifecycle --json ") == CommandFacts.all[2].subcommands)
        #expect(try offers("notify-lifecycle --timeout 5 st") == ["status"])
        #expect(try offers("notify-post ") == [])
        // The agent posts these itself.
        let locks: Set = ["com.apple.screenIsLocked", "com.apple.screenIsUnlocked"]
        #expect(Set(try offers("notify-wait -n 2 com.apple.screenIs")) == locks)
        #expect(Set(try offers("notify-state get com.apple.screenIs")) == locks)
        let colon = ["notify-wait", "com.apple.system.info", ":", "/etc/h"]
        #expect(try offers(colon, line: "notify-wait com.apple.system.info:/etc/h") == ["/etc/hosts"])
        #expect(try offers("notify-wait -n ") == [])
        #expect(try offers("notify-post --address ") == [])
        #expect(try offers("notify-lifecycle list ") == [])
    }

    @Test func `targets come from the agent on the bus that the line names`() throws {
        let observer = try Observer()
        let line = "notify-lifecycle --address \(observer.bus.address) background "
        #expect(Set(try offers(line)) == Set(observer.targets))
        #expect(try offers(line + "pid") == ["pid:\(observer.process)"])
        let words = line.split(separator: " ").map(String.init)
        // Bash splits at the colon, and inserts what follows it.
        #expect(try offers(words + ["pid", ":"], line: line + "pid:") == ["\(observer.process)"])
        #expect(try offers(words + [":", "1."], line: line + ":1.") == [String(observer.name.dropFirst())])
    }

    @Test func `an application is offered, unless its name has a special meaning in a shell`() throws {
        let names = ["org.example.A-b", "$(exit)", "b c", "*", ""]
        let list = names.map { #"{"name":":1.5","pid":7,"uid":0,"program":"a\"b","application":"\#($0)","state":"x"}"# }
        let prelude = "notify-lifecycle() { printf '%s\\n' '\(list.joined(separator: "' '"))'; }"
        let offered = try offers(
            ["notify-lifecycle", "resume", ""],
            line: "notify-lifecycle resume ",
            prelude: prelude
        )
        #expect(Set(offered) == [":1.5", "pid:7", "app:org.example.A-b"])
    }

    @Test func `without an agent, or on a stopped bus, it offers no targets and returns`() throws {
        let bus = try PrivateBus(.daemon)
        let line = "notify-lifecycle suspend "
        #expect(try offers(["notify-lifecycle", "suspend", ""], line: line, bus: bus.address) == [])
        bus.stop()
        defer { bus.resume() }
        #expect(try offers(["notify-lifecycle", "suspend", ""], line: line, bus: bus.address) == [])
    }
}
