// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// `notify-wait`: waits for names, and prints them or runs a command.
enum WaitCommand {
    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = WaitSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, settings throws(UsageError) in
            settings.command = operands.afterDashes
            try settings.check()
            return try Subject(operands.beforeDashes)
        }
        let subject: Subject
        switch beginning {
        case .failure(let end): return end.code
        case .success(let understood): subject = understood
        }
        do throws(StartError) {
            var waiter = try Waiter(subject, settings, diagnostics)
            switch waiter.run() {
            case .code(let code): return code
            case .signal(let number): Signals.end(by: number)
            }
        } catch {
            switch error.code {
            case .done: break
            // It is what was asked for.
            case .timedOut: diagnostics.notice(error.message)
            default: diagnostics.error(error.message)
            }
            return error.code
        }
    }
}

/// Why the wait could not start.
struct StartError: Error {
    let message: String
    let code: ExitCode

    init(_ message: String, code: ExitCode = .failed) {
        self.message = message
        self.code = code
    }

    init(_ error: NotifyBusError) {
        // Not the time that the user gave is up, but that for the bus.
        self.init(error.description, code: error.code == .timedOut ? .unavailable : ExitCode(error))
    }

    static func timedOut(after count: Int, _ reason: String) -> StartError {
        StartError("timed out after \(count) notification\(count == 1 ? "" : "s")\(reason)", code: .timedOut)
    }

    /// The bus, or the agent on it, has used up all of the time.
    static func lateBus(since start: Int64, _ center: NotifyCenter) -> StartError {
        // A healthy one takes milliseconds.
        guard Clock.monotonic - start >= 500_000_000 else { return timedOut(after: 0, "") }
        guard center.agentContact == .asked else { return timedOut(after: 0, "; the bus did not answer") }
        return timedOut(after: 0, "; the lifecycle agent did not answer\(AgentHint.text(for: center.bus))")
    }

    /// Nobody reads the output any more, which is no error.
    static let readerGone = StartError("", code: .done)
}
