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
            return try Subject(operands.beforeDashes, arePrefixes: settings.isPrefix)
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
            // Timing out is what was asked for.
            if error.code == .timedOut { diagnostics.notice(error.message) } else { diagnostics.error(error.message) }
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
        self.init(error.description, code: ExitCode(error))
    }

    static func timedOut(after count: Int, _ reason: String) -> StartError {
        StartError("timed out after \(count) notification\(count == 1 ? "" : "s")\(reason)", code: .timedOut)
    }

    /// The bus has used up all of the time.
    static func lateBus(since start: Int64) -> StartError {
        // A healthy bus takes milliseconds.
        let isSlow = Clock.monotonic - start >= 500_000_000
        return timedOut(after: 0, isSlow ? "; the bus did not answer" : "")
    }
}
