// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// `notify-state`: reads, sets and waits for the states of names.
enum StateCommand {
    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = StateSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, settings throws(UsageError) in
            try StateRequest(operands, settings)
        }
        let request: StateRequest
        switch beginning {
        case .failure(let end): return end.code
        case .success(let understood): request = understood
        }
        do throws(StateFailure) {
            switch request {
            case .get(let names): return try get(names, settings)
            case .set(let name, let value): return try set(name, value, settings)
            case .wait(let name): return try StateWatcher([name], settings, diagnostics).wait(settings.condition)
            case .watch(let names): return try StateWatcher(names, settings, diagnostics).watch()
            }
        } catch {
            // Timing out is what was asked for.
            if error.code == .timedOut { diagnostics.notice(error.message) } else { diagnostics.error(error.message) }
            return error.code
        }
    }

    /// How long reading and setting may take by default.
    private static let timeLimit = Duration.seconds(10)

    private static func get(_ names: [NotifyName], _ settings: StateSettings) throws(StateFailure) -> ExitCode {
        let agent = StateAgent(settings.common, until: Deadline(after: settings.timeout ?? timeLimit))
        let output = StateOutput(settings, hasNames: names.count > 1)
        for name in names {
            if try !output.write(name, agent.state(of: name)) { break }
        }
        return .done
    }

    private static func set(
        _ name: NotifyName,
        _ value: UInt64,
        _ settings: StateSettings
    ) throws(StateFailure) -> ExitCode {
        let agent = StateAgent(settings.common, until: Deadline(after: settings.timeout ?? timeLimit))
        try agent.set(value, of: name)
        if settings.posts { try agent.post(name) }
        return .done
    }
}

/// Why something was not done, and the corresponding exit status.
struct StateFailure: Error {
    let message: String
    let code: ExitCode

    init(_ message: String, code: ExitCode = .failed) {
        self.message = message
        self.code = code
    }

    init(_ error: NotifyBusError) {
        self.init(error.description, code: error.code == .noAgent ? .unavailable : ExitCode(error))
    }

    init(_ error: AgentError, _ name: NotifyName) {
        switch error {
        case .unreachable(let error):
            self.init(error)
        case .refused(let fault):
            self.init("\(fault.message.isEmpty ? fault.name : fault.message)")
        }
    }
}
