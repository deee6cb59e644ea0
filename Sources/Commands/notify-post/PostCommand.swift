// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import Glibc
import NotifyCore

struct PostSettings: CommonSettings {
    var common = CommonOptions()
    /// How long the whole command may take.
    var timeout: Duration?
    /// Whether a name may have blanks at its ends.
    var isLiteral = false
}

/// `notify-post`: posts the names on the command line, and in place of `-` those from standard input.
enum PostCommand {
    /// One operand.
    private enum Item {
        case name(NotifyName)
        case standardInput
    }

    static let command = Command<PostSettings>(
        name: "notify-post",
        usage: ["[OPTION]... NAME...", "[OPTION]... -"],
        summary: [
            "Posts each NAME, in the order given and over one connection, to every program that observes it, if any. "
                + "Exits once the bus has accepted every post.",
            "With -, reads names from standard input, one per line, and posts each as it arrives. Invalid lines are "
                + "reported and skipped. Lines are never coalesced: if the bus is slow, notify-post waits.",
            "A name is 1 to 511 bytes of UTF-8, such as com.example.backup.done.",
        ],
        options: [
            .timeout(
                group: "Posting",
                help: "Give up with status 2 if the bus has not accepted every post after DURATION, which includes "
                    + "connecting and reading. Examples: 500ms, 2s, 1h30m; a plain number means seconds."
            ) { $0.timeout = $1 },
            .flag(
                "literal",
                group: "Posting",
                help: "Take each NAME literally; allow white space at its ends, which is otherwise an error."
            ) { $0.isLiteral = true },
        ]
            + Option.common(
                quiet: "Print nothing but errors (the default).",
                verbose: "Report on standard error how many names were posted."
            ),
        operands: .names,
        exitStatus: [
            ("0", "The bus accepted every post."),
            ("1", "A post failed, or a line of standard input was not a valid name."),
            ("2", "The timeout expired."),
            ("64", "The command line or a NAME was invalid; nothing was posted."),
            (
                "69",
                "There is no bus, it went away, or no timeout was given and it did not answer for 25 s, or for 10 s when "
                    + "connecting."
            ),
        ],
        examples: [
            "notify-post com.example.backup.done",
            "seq -f com.example.step.%g 3 | notify-post -",
        ]
    )

    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = PostSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, settings throws(UsageError) in
            try self.items(operands, isLiteral: settings.isLiteral)
        }
        let items: [Item]
        switch beginning {
        case .failure(let end): return end.code
        case .success(let understood): items = understood
        }
        let deadline = settings.timeout.map { Deadline(after: $0) }
        var poster = Poster(NotifyCenter(bus: settings.common.notifyBus), until: deadline)
        do throws(PostFailure) {
            let code: ExitCode
            do throws(PostFailure) {
                code = try post(items, settings, by: &poster, until: deadline, diagnostics)
            } catch {
                // The names before it were posted, and count as any others.
                if error.isOfName { try? poster.finish() }
                throw error
            }
            try poster.finish()
            if poster.isAgentLate {
                diagnostics.detail("the agent did not answer; it may not start programs for what was posted")
            }
            diagnostics.detail("posted \(poster.count) name\(poster.count == 1 ? "" : "s")")
            return code
        } catch {
            diagnostics.error(error.message)
            return error.code
        }
    }

    /// All operands, each validated before anything is posted.
    private static func items(_ operands: Operands, isLiteral: Bool) throws(UsageError) -> [Item] {
        var items: [Item] = []
        var readsInput = false
        for operand in operands.beforeDashes {
            if operand == "-" {
                if readsInput { throw UsageError("'-' can be given only once") }
                readsInput = true
                items.append(.standardInput)
            } else {
                items.append(.name(try name(operand, isLiteral: isLiteral)))
            }
        }
        for operand in operands.afterDashes ?? [] {
            items.append(.name(try name(operand, isLiteral: isLiteral)))
        }
        if items.isEmpty {
            throw UsageError("no name given; try '\(command.name) com.example.done', or '-' to read standard input")
        }
        return items
    }

    private static func name(_ operand: Argument, isLiteral: Bool) throws(UsageError) -> NotifyName {
        try NotifyName(operand: operand, isLiteral: isLiteral, consequence: ", so nothing was posted")
    }

    private static func post(
        _ items: [Item],
        _ settings: PostSettings,
        by poster: inout Poster,
        until deadline: Deadline?,
        _ diagnostics: Diagnostics
    ) throws(PostFailure) -> ExitCode {
        var code = ExitCode.done
        // The first post would block until the bus has accepted the connection.
        if deadline != nil { try poster.confirm() }
        for item in items {
            switch item {
            case .name(let name):
                _ = try poster.post(name)
            case .standardInput:
                // If names are typed or arrive slowly, report a missing bus right away.
                try poster.confirm()
                var lines = InputLines(deadline: deadline, isLiteral: settings.isLiteral)
                try lines.post(by: &poster, diagnostics)
                if lines.hasFailed { code = .failed }
            }
        }
        return code
    }
}

extension Program {
    package static var notifyPost: Program { Program(PostCommand.command, run: PostCommand.run) }
}
