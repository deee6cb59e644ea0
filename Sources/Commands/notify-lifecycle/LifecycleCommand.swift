// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import Glibc
import NotifyCore

/// `notify-lifecycle`: shows the lifecycle states of the observers on a bus, and changes them.
enum LifecycleCommand {
    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = LifecycleSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, settings throws(UsageError) in
            try LifecycleRequest(operands, settings)
        }
        let request: LifecycleRequest
        switch beginning {
        case .failure(let end): return end.code
        case .success(let understood): request = understood
        }
        do throws(CommandFailure) {
            switch request {
            case .list: return try list(settings, diagnostics)
            case .status: return try status(settings, diagnostics)
            case .launches: return try launches(settings, diagnostics)
            case .focus: return try focus(settings)
            case .nap(let isOn):
                let agent = try AgentConnection(settings)
                _ = try agent.call(AgentInterface.SetNaps(isOn))
                return .done
            case .watch: return try WatchCommand(settings, diagnostics).run()
            case .change(let change): return try change.apply(settings, diagnostics)
            }
        } catch {
            diagnostics.error(error.message)
            return error.code
        }
    }

    private static func list(
        _ settings: LifecycleSettings,
        _ diagnostics: Diagnostics
    ) throws(CommandFailure) -> ExitCode {
        let agent = try AgentConnection(settings)
        let observers = AgentInterface.ListEntry.sorted(try agent.call(AgentInterface.List()).connections)
        if settings.isJSON {
            return try print(observers.map(\.json).joined())
        }
        let table = ObserverTable(observers, isDetailed: settings.common.verbosity == .verbose)
        let code = try print(
            table.text(withHeader: settings.common.verbosity != .quiet, now: Clock.timeOfDay / 1_000_000_000)
        )
        if let legend = table.legend { diagnostics.notice(legend) }
        return code
    }

    private static func status(
        _ settings: LifecycleSettings,
        _ diagnostics: Diagnostics
    ) throws(CommandFailure) -> ExitCode {
        let agent = try AgentConnection(settings)
        let report = StatusReport(try agent.call(AgentInterface.Status()))
        return try print(settings.isJSON ? report.json : report.text)
    }

    private static func launches(
        _ settings: LifecycleSettings,
        _ diagnostics: Diagnostics
    ) throws(CommandFailure) -> ExitCode {
        let agent = try AgentConnection(settings)
        let table = LaunchTable(try agent.call(AgentInterface.Status()))
        if settings.isJSON { return try print(table.json) }
        return try print(
            table.text(
                withHeader: settings.common.verbosity != .quiet,
                isDetailed: settings.common.verbosity == .verbose
            )
        )
    }

    private static func focus(_ settings: LifecycleSettings) throws(CommandFailure) -> ExitCode {
        let agent = try AgentConnection(settings)
        // The agent follows the focus while a program wants to know it, and this call waits until it is known.
        _ = try agent.call(AgentInterface.GetNameState("org.notifybus.session.focus"))
        let status = try agent.call(AgentInterface.Status())
        guard let focus = AgentInterface.FocusEntry(status) else {
            throw CommandFailure(
                "no source of the agent knows which program has the focus; 'notify-lifecycle status' says why"
            )
        }
        if settings.isJSON { return try print(focus.json) }
        func cell(_ text: String) -> String { text.isEmpty ? "-" : Printable.text(text) }
        let application = focus.application.isEmpty ? focus.window : focus.application
        return try print("\(focus.process)  \(cell(application))  \(cell(focus.source))\n")
    }

    private static func print(_ text: String) throws(CommandFailure) -> ExitCode {
        try StandardStreams.print(text)
        return .done
    }
}

extension LifecycleCommand {
    static let command = Command<LifecycleSettings>(
        name: "notify-lifecycle",
        usage: [
            "list|status|launches|focus|watch [OPTION]...",
            "foreground|background|resume [OPTION]... TARGET...",
            "suspend [--freeze] [OPTION]... TARGET...",
            "release [OPTION]... [TARGET]...",
            "nap on|off [OPTION]...",
        ],
        summary: [
            "Shows which observers on the bus are in the foreground, in the background or suspended, according to the "
                + "lifecycle agent, and changes their states. A change is in effect when the command exits. It overrides "
                + "what the program and the desktop report, until it is released.",
            "A TARGET is pid:N or just N, all observers of a process; :1.N, the observer with that unique bus name; or "
                + "app:ID, all observers of an application. Only root may change observers of other "
                + "users.",
        ],
        subcommands: Verb.allCases.map { ($0.rawValue, $0.meaning) },
        options: own
            + Option.common(
                quiet: "Omit the table's header, and print only errors on standard error.",
                verbose:
                    "Also show connections, users, the focus and names; with watch, what the agent learns; and for a "
                    + "change, how many observers it affected."
            ),
        operands: .targets(after: Verb.allCases.filter(\.takesTargets).map(\.rawValue)),
        exitStatus: [
            ("0", "Success, or the reader of the output went away."),
            ("1", "The agent refused, there is no such TARGET, or something else failed."),
            ("2", "An observer or the agent did not respond in time."),
            ("64", "The command line was invalid; nothing was changed."),
            ("69", "There is no bus or no agent, or it went away."),
            ExitCode.killed,
        ],
        examples: [
            "notify-lifecycle list",
            "notify-lifecycle launches",
            "notify-lifecycle background app:org.example.Editor",
            "notify-lifecycle suspend --freeze pid:4711",
            "notify-lifecycle release",
            "notify-lifecycle watch --json",
        ]
    )

    private static var own: [Option<LifecycleSettings>] {
        let group = "Options"
        return [
            .flag(
                "json",
                group: group,
                help: "With list, status, launches, focus and watch: print one JSON object per line."
            ) {
                $0.isJSON = true
            },
            .flag(
                "freeze",
                group: group,
                help: "With suspend: stop the processes as well. Resume lets them continue."
            ) { $0.freezes = true },
            .timeout(
                group: group,
                help: "How long to wait for each answer from the agent (default: 10s). Examples: 500ms, 2s, 1m."
            ) { $0.timeout = $1 },
        ]
    }
}

/// The values of the options of `notify-lifecycle`.
struct LifecycleSettings: CommonSettings {
    var common = CommonOptions()

    var isJSON = false
    var freezes = false
    /// How long a reply may take. The agent gives an observer 5 seconds.
    var timeout = Duration.seconds(10)
}

extension Program {
    package static var notifyLifecycle: Program { Program(LifecycleCommand.command, run: LifecycleCommand.run) }
}
