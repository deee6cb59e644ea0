// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import Glibc
import NotifyCore

/// The values of the options of `notify-top`.
struct TopSettings: CommonSettings {
    var common = CommonOptions()

    var isOnce = false
    var isJSON = false
    /// How long it listens with `--once`.
    var time = Duration.seconds(1)
    var order = NameOrder.rate
}

/// `notify-top`: shows posted names and observers as they change.
enum TopCommand {
    static let command = Command<TopSettings>(
        name: "notify-top",
        usage: ["[OPTION]..."],
        summary: [
            "Shows which names are posted and how often, and which programs observe and in which state. Redraws whenever "
                + "something changes. Counts from when it was started.",
            "Keys: s changes the sort order, Tab shows names, observers or both, b switches between the session bus and "
                + "the system bus, r resets the counters, q quits.",
        ],
        options: [
            .value(
                "sort",
                nil,
                "ORDER",
                .choice(NameOrder.allCases.map(\.rawValue)),
                group: "Output",
                help: "Sort names by rate (the default), count, last post or name."
            ) { settings, value in
                settings.order = NameOrder.allCases.first { value.bytes.elementsEqual($0.rawValue.utf8) } ?? .rate
            },
            .flag("once", group: "Output", help: "Listen for one second, print the result and exit.") {
                $0.isOnce = true
            },
            .value(
                "time",
                "t",
                "DURATION",
                .duration,
                group: "Output",
                help: "With --once: listen for DURATION."
            ) { settings, value throws(UsageError) in
                settings.time = try Duration(argument: value)
            },
            .flag("json", group: "Output", help: "With --once: print JSON, one object per name and per observer.") {
                $0.isJSON = true
            },
        ]
            + Option.common(
                quiet: "Print only errors on standard error.",
                verbose: "Report on standard error when it is listening."
            ),
        exitStatus: [
            ("0", "Success, or q was pressed."),
            ("1", "Something failed, or standard output is not a terminal and --once was not given."),
            ("64", "The command line was invalid."),
            ("69", "There is no bus, or it did not answer."),
            ExitCode.killed,
        ],
        examples: ["notify-top", "notify-top --system", "notify-top --once -t 5s --sort count"]
    )

    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = TopSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, settings throws(UsageError) in
            if let operand = operands.beforeDashes.first ?? operands.afterDashes?.first {
                throw UsageError("unexpected argument \(operand.quoted); '\(command.name)' takes only options")
            }
            if settings.isJSON, !settings.isOnce { throw UsageError("--json can only be used with --once") }
        }
        if case .failure(let end) = beginning { return end.code }
        do throws(CommandFailure) {
            if settings.isOnce { return try printOnce(settings, diagnostics) }
            guard StandardStreams.outputIsTerminal else {
                throw CommandFailure("standard output is not a terminal; use '\(command.name) --once'")
            }
            var view = try LiveView(settings)
            switch try view.run() {
            case .code(let code): return code
            case .signal(let number): Signals.end(by: number)
            }
        } catch {
            diagnostics.error(error.message)
            return error.code
        }
    }

    private static func printOnce(_ settings: TopSettings, _ diagnostics: Diagnostics) throws(CommandFailure)
        -> ExitCode
    {
        let feed = try Feed(settings.common.notifyBus)
        let deadline = Deadline(after: settings.time)
        let isInSandbox = !settings.common.notifyBus.isWhole
        var model = Model(order: settings.order, start: Clock.monotonic, isInSandbox: isInSandbox)
        diagnostics.detail("listening")
        if let obstacle = feed.obstacle { diagnostics.notice(obstacle) }
        while !deadline.hasPassed {
            feed.sleep(until: deadline, beside: [])
            feed.take(into: &model)
        }
        // It may have been requested just a moment ago.
        feed.askForObservers(at: 0)
        let timeLimit = Deadline(after: .seconds(1))
        while !feed.hasAnswered, !timeLimit.hasPassed { feed.sleep(until: timeLimit, beside: []) }
        feed.take(into: &model)
        let text =
            settings.isJSON
            ? model.json(now: Clock.monotonic)
            : Page(model, now: Clock.monotonic).lines(width: Terminal.size?.columns, isColored: Terminal.hasColors)
                .map { $0 + "\n" }.joined()
        try StandardStreams.print(text)
        return .done
    }
}

extension Program {
    package static var notifyTop: Program { Program(TopCommand.command, run: TopCommand.run) }
}
