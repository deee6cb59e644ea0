// SPDX-License-Identifier: Apache-2.0

import CommandSupport
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
        do throws(LifecycleFailure) {
            switch request {
            case .list: return try list(settings, diagnostics)
            case .status: return try status(settings, diagnostics)
            case .launches: return try launches(settings, diagnostics)
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
    ) throws(LifecycleFailure) -> ExitCode {
        var agent = try AgentConnection(settings)
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
    ) throws(LifecycleFailure) -> ExitCode {
        var agent = try AgentConnection(settings)
        let report = StatusReport(try agent.call(AgentInterface.Status()))
        return try print(settings.isJSON ? report.json : report.text)
    }

    private static func launches(
        _ settings: LifecycleSettings,
        _ diagnostics: Diagnostics
    ) throws(LifecycleFailure) -> ExitCode {
        var agent = try AgentConnection(settings)
        let table = LaunchTable(try agent.call(AgentInterface.Status()))
        if settings.isJSON { return try print(table.json) }
        return try print(
            table.text(
                withHeader: settings.common.verbosity != .quiet,
                isDetailed: settings.common.verbosity == .verbose
            )
        )
    }

    /// Writes data to standard output. It is not an error if the reader has gone away.
    static func print(_ text: some StringProtocol) throws(LifecycleFailure) -> ExitCode {
        switch StandardStreams.write(String(text), to: STDOUT_FILENO) {
        case .written, .readerGone: return .done
        case .failed(let number):
            throw LifecycleFailure("can't write to standard output: \(Diagnostics.text(of: number))")
        }
    }
}
