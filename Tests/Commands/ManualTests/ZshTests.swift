// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Completions in zsh, which runs at a terminal of its own.
@Suite(.enabled(if: isInstalled("zsh"), "zsh is not installed.")) struct ZshTests {
    /// What `compinit` has found in the folders of completions, made once: it looks through a thousand files.
    private static let dump = Result {
        let (completions, dump) = try (Manuals.path("completions/zsh"), Manuals.path("zcompdump"))
        let script = "rm -f $2; fpath=($1 $fpath); autoload -Uz compinit && compinit -u -d $2"
        let result = try run("zsh", ["-fc", script, "zsh", completions, dump])
        guard result.status == 0 else { throw TestSupportError("compinit ended with \(result.status).") }
        return dump
    }

    /// Presses TAB after `line`, and returns what would be inserted or listed.
    ///
    /// Every match passes through `compadd`; here it also records the matches.
    private func offers(_ line: String, bus: String = "unix:path=/nonexistent") throws -> [String] {
        let script = """
            zmodload zsh/zpty zsh/zselect
            cat >$2/driver <<'ZSH'
            fpath=(${FOLDER} $fpath)
            autoload -Uz compinit && compinit -u -d $DUMP
            zstyle ':completion:*' verbose no
            zstyle ':completion:*' completer _complete
            compadd() {
                if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
                    local -a hits
                    builtin compadd -A hits "$@"
                    (( $#hits )) && print -rl -- $hits >>$OFFERS
                fi
                builtin compadd "$@"
            }
            finish() { : >$OFFERS.done; exit }
            comppostfuncs=(finish)
            bindkey '^I' complete-word
            ZSH
            : >$2/offers
            export FOLDER=$1 OFFERS=$2/offers DUMP=$4 TERM=dumb
            zpty shell zsh -f -i
            zpty -w shell "source ${(q)2}/driver"
            zpty -w -n shell "$3"$'\\t'
            for ((i = 0; i < 1000; i++)); do
                zpty -r -t shell ignored
                [[ -e $2/offers.done ]] && break
                zselect -t 2
            done
            cat $2/offers
            zpty -d shell
            """
        let folder = try run("mktemp", ["-d"]).lines[0]
        defer { _ = try? run("rm", ["-rf", folder]) }
        let completions = try Manuals.path("completions/zsh")
        let result = try run(
            "zsh",
            ["-fc", script, "zsh", completions, folder, line, ZshTests.dump.get()],
            environment: environment(bus: bus)
        )
        #expect(result.errorOutput == "")
        return result.lines.filter { !$0.isEmpty }
    }

    @Test(arguments: CommandFacts.all)
    func `zsh can read it`(command: CommandFacts) throws {
        #expect(try run("zsh", ["-n", Manuals.path(command.zsh)]).errorOutput == "")
    }

    @Test(arguments: CommandFacts.all)
    func `every option is offered`(command: CommandFacts) throws {
        let offered = Set(try offers("\(command.name) -").map { $0.hasSuffix("=") ? String($0.dropLast()) : $0 })
        #expect(offered.isSuperset(of: command.spellings), "\(offered)")
    }

    @Test(arguments: CommandFacts.all)
    func `every word that an option takes is offered`(command: CommandFacts) throws {
        for (option, words) in command.choices {
            #expect(Set(try offers("\(command.name) \(option) ")) == Set(words))
            #expect(Set(try offers("\(command.name) \(option)=")) == Set(words))
        }
    }

    @Test func `files, commands and subcommands are offered where they belong`() throws {
        #expect(try offers("notify-wait --ready-file /etc/os-rel").contains("os-release"))
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
