// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Completions in fish, from its builtin `complete`.
@Suite(.enabled(if: isInstalled("fish"), "fish is not installed.")) struct FishTests {
    /// What fish offers after `line`.
    private func offers(_ line: String, bus: String = "unix:path=/nonexistent") throws -> [String] {
        let command = line.prefix { $0 != " " }
        let facts = try #require(CommandFacts.all.first { $0.name == command })
        let result = try run(
            "fish",
            ["--no-config", "-c", "source $argv[1]; complete -C $argv[2]", Manuals.path(facts.fish), line],
            environment: environment(bus: bus)
        )
        #expect(result.errorOutput == "")
        // Each is followed by a tab and its description.
        return result.lines.map { String($0.prefix { $0 != "\t" }) }
    }

    @Test(arguments: CommandFacts.all)
    func `fish can read it`(command: CommandFacts) throws {
        #expect(try run("fish", ["--no-config", "-n", Manuals.path(command.fish)]).errorOutput == "")
    }

    @Test(arguments: CommandFacts.all)
    func `every option is offered`(command: CommandFacts) throws {
        let offered = Set(
            try (offers("\(command.name) -") + offers("\(command.name) --")).map {
                $0.hasSuffix("=") ? String($0.dropLast()) : $0
            }
        )
        #expect(offered.isSuperset(of: command.spellings), "\(offered)")
    }

    @Test(arguments: CommandFacts.all)
    func `every word that an option takes is offered`(command: CommandFacts) throws {
        for (option, words) in command.choices {
            #expect(Set(try offers("\(command.name) \(option) ")) == Set(words))
            #expect(Set(try offers("\(command.name) \(option)=")) == Set(words.map { "\(option)=\($0)" }))
        }
    }

    @Test func `files, commands and subcommands are offered where they belong`() throws {
        #expect(try offers("notify-wait --ready-file /etc/os-rel") == ["/etc/os-release"])
        #expect(try offers("notify-wait --then notify-pos").contains("notify-post"))
        #expect(try offers("notify-wait a -- notify-pos").contains("notify-post"))
        #expect(Set(try offers("notify-lifecycle ")) == Set(CommandFacts.all[2].subcommands))
        #expect(try offers("notify-post ") == [])
        // The agent posts these itself.
        let locks: Set = ["com.apple.screenIsLocked", "com.apple.screenIsUnlocked"]
        #expect(Set(try offers("notify-wait -n 2 com.apple.screenIs")) == locks)
        #expect(Set(try offers("notify-state get com.apple.screenIs")) == locks)
        #expect(try offers("notify-wait com.apple.system.info:/etc/h") == ["com.apple.system.info:/etc/hosts"])
    }

    @Test func `targets come from the agent on the bus that the line names`() throws {
        let observer = try Observer()
        let line = "notify-lifecycle --address \(observer.bus.address) background "
        #expect(Set(try offers(line)) == Set(observer.targets))
        #expect(try offers(line + "pid:") == ["pid:\(observer.process)"])
        #expect(try offers("notify-lifecycle --address \(observer.bus.address) list ") == [])
    }
}
