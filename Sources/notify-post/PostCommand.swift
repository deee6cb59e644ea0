// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

struct PostSettings: CommonSettings {
    var common = CommonOptions()
    /// How long all of it may take.
    var timeout: Duration?
}

/// `notify-post`: posts the names of the command line, and those that standard input brings in place of `-`.
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
            "Posts each NAME to everyone who observes it, in the order given, over one connection. Nobody need be "
                + "observing; it ends when the bus has taken every post.",
            "With - it reads names from standard input, one a line, and posts each line as it comes. A line that is no "
                + "name is reported and left out. No line is coalesced with another: it waits for the bus instead.",
            "A name is 1 to 511 bytes of UTF-8, such as com.example.backup.done.",
        ],
        options: [
            .timeout(
                group: "When it gives up",
                help: "With status 2 when not every post was taken after this long, connecting and reading included: "
                    + "500ms, 2s, 1h30m; a number alone is seconds."
            ) { $0.timeout = $1 }
        ]
            + Option.common(
                quiet: "Says nothing but errors, which is what it does anyway.",
                verbose: "Says on standard error how many were posted."
            ),
        operands: .names,
        exitStatus: [
            ("0", "The bus has taken every post."),
            ("1", "A post failed, or a line of standard input was no name."),
            ("2", "The time was over first."),
            ("64", "The command line was wrong, or a NAME was; nothing was posted."),
            ("69", "There is no bus, or it went away."),
        ],
        examples: [
            "notify-post com.example.backup.done",
            "seq -f com.example.step.%g 3 | notify-post -",
        ]
    )

    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = PostSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, _ throws(UsageError) in
            try self.items(operands)
        }
        let items: [Item]
        switch beginning {
        case .failure(let end): return end.code
        case .success(let understood): items = understood
        }
        let deadline = settings.timeout.map { Deadline(after: $0) }
        var poster = Poster(NotifyCenter(bus: settings.common.notifyBus), until: deadline)
        do throws(PostFailure) {
            let code = try post(items, by: &poster, until: deadline, diagnostics)
            diagnostics.detail("posted \(poster.count) name\(poster.count == 1 ? "" : "s")")
            return code
        } catch {
            diagnostics.error(error.message)
            return error.code
        }
    }

    /// All operands, each of them seen to be right before anything is posted.
    private static func items(_ operands: Operands) throws(UsageError) -> [Item] {
        var items: [Item] = []
        var readsInput = false
        for operand in operands.beforeDashes {
            if operand == "-" {
                if readsInput { throw UsageError("standard input can be read once; give '-' once") }
                readsInput = true
                items.append(.standardInput)
            } else {
                items.append(.name(try name(operand)))
            }
        }
        for operand in operands.afterDashes ?? [] {
            items.append(.name(try name(operand)))
        }
        if items.isEmpty {
            throw UsageError("no name to post; give one, as in '\(command.name) com.example.done', or - to read them")
        }
        return items
    }

    private static func name(_ operand: Argument) throws(UsageError) -> NotifyName {
        try NotifyName(operand: operand, consequence: ", so nothing was posted")
    }

    private static func post(
        _ items: [Item],
        by poster: inout Poster,
        until deadline: Deadline?,
        _ diagnostics: Diagnostics
    ) throws(PostFailure) -> ExitCode {
        var code = ExitCode.done
        // A first post would take as long as the bus takes to let this program in.
        if deadline != nil { try poster.confirm() }
        for item in items {
            switch item {
            case .name(let name):
                _ = try poster.post(name)
            case .standardInput:
                // Whoever types names, or feeds them slowly, should learn now that there is no bus.
                try poster.confirm()
                var lines = InputLines(deadline: deadline)
                try lines.post(by: &poster, diagnostics)
                if lines.hasFailed { code = .failed }
            }
        }
        try poster.finish()
        return code
    }
}
