// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import Glibc
import NotifyCore

/// `notify-wait`: waits for names, and prints them or runs a command.
enum WaitCommand {
    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = WaitSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, settings throws(UsageError) in
            settings.command = operands.afterDashes
            try settings.check()
            let subject = try Subject(operands.beforeDashes, isLiteral: settings.isLiteral)
            if settings.holds, Hold.names(among: subject.names).isEmpty {
                let list = Hold.names.map(\.string).joined(separator: " or ")
                throw UsageError("--hold needs \(list) among the names")
            }
            return subject
        }
        let subject: Subject
        switch beginning {
        case .failure(let end): return end.code
        case .success(let understood): subject = understood
        }
        if !settings.isLiteral { warn(of: subject, settings, diagnostics) }
        do throws(CommandFailure) {
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

    /// Says what can only be a mistake, and waits for it all the same.
    private static func warn(of subject: Subject, _ settings: WaitSettings, _ diagnostics: Diagnostics) {
        NameMistake.lines(for: subject.names).forEach { diagnostics.notice($0) }
        guard settings.command == nil, subject.names.count > 1 else { return }
        for name in subject.names.dropFirst() where !name.string.utf8.contains(UInt8(ascii: ".")) {
            if isUnitOfTime(name.string), settings.timeout != nil || settings.settle != nil {
                return diagnostics.notice("'\(name)' is taken for a name; a duration is one word, as in 10m")
            }
            if isProgram(name.string) {
                return diagnostics.notice("'\(name)' is taken for a name; a command comes after '--'")
            }
        }
    }

    private static func isUnitOfTime(_ word: String) -> Bool {
        let stem = word.hasSuffix("s") ? String(word.dropLast()) : word
        return ["m", "", "h", "d", "sec", "min", "second", "minute", "hour", "day", "week"].contains(stem)
    }

    /// Whether a shell would find it in `$PATH`.
    private static func isProgram(_ word: String) -> Bool {
        guard !word.utf8.contains(UInt8(ascii: "/")), let path = getenv("PATH") else { return false }
        return String(cString: path).split(separator: ":").contains { access("\($0)/\(word)", X_OK) == 0 }
    }
}

extension CommandFailure {
    static func timedOut(after count: Int, _ reason: String) -> CommandFailure {
        CommandFailure("timed out after \(count) notification\(count == 1 ? "" : "s")\(reason)", code: .timedOut)
    }

    /// The bus, or the agent on it, has used up all of the time.
    static func lateBus(since start: Int64, _ center: NotifyCenter) -> CommandFailure {
        // A healthy one takes milliseconds.
        guard Clock.monotonic - start >= 500_000_000 else { return timedOut(after: 0, "") }
        guard center.agentContact == .asked else { return timedOut(after: 0, "; the bus did not answer") }
        return timedOut(after: 0, "; the lifecycle agent did not answer\(AgentHint.text(for: center.bus))")
    }

    /// The output has no reader any more, which is no error.
    static let readerGone = CommandFailure("", code: .done)
}

extension WaitCommand {
    static let command = Command<WaitSettings>(
        name: "notify-wait",
        usage: ["[OPTION]... NAME... [-- COMMAND [ARG]...]"],
        summary: [
            "Waits until one of the NAMEs is posted, prints it and exits. To know when it is safe to post, use --then, "
                + "--ready-fd, --ready-file or READY=1: once they report that the observer is live, no post is missed.",
            "A NAME that ends in .* stands for every name that begins with what comes before the *: 'com.example.*'. A * "
                + "alone stands for every name.",
            "With a COMMAND, runs it for each notification, one run at a time, with the name in $NOTIFY_NAME, the "
                + "number of notifications so far in $NOTIFY_COUNT and, with --settle, all names in $NOTIFY_NAMES, one "
                + "per line. Names are then printed only with -v, --json, --format or -0. Before exiting, even after a "
                + "timeout, it waits for the runs that are still due.",
        ],
        options: subject + ending + output + readiness + running + retry
            + Option.common(
                quiet: "Print no names, and only errors on standard error.",
                verbose: "Report on standard error when the observer is live; print names even with a COMMAND."
            ),
        operands: .observedNames,
        runsCommand: true,
        exitStatus: [
            ("0", "The wait succeeded, or the reader of the output went away."),
            ("1", "Something failed."),
            ("2", "The timeout expired."),
            ("64", "The command line was invalid."),
            (
                "69",
                "There is no bus, or it did not answer for 25 s, or for 10 s when connecting; with --exit-with-bus, it "
                    + "has ended."
            ),
            (
                "N",
                "A COMMAND or the --then command failed: the status of the last one that did, 128 plus the number of "
                    + "the signal that killed it, or 127 or 126 if it can't be found or run."
            ),
            ExitCode.killed,
        ],
        examples: [
            "notify-wait com.example.backup.done -t 10m",
            "notify-wait com.example.pong -t 2s --then 'notify-post com.example.ping'",
            "notify-wait -f 'com.example.*' --format '%t %n'",
            "notify-wait -f com.example.config.changed --settle 200ms -- make site",
        ]
    )

    private static var subject: [Option<WaitSettings>] {
        let group = "Notifications"
        return [
            .flag(
                "literal",
                group: group,
                help: "Take each NAME literally; treat .* as part of it, allow white space at its ends, and don't "
                    + "warn about likely mistakes."
            ) { $0.isLiteral = true },
            .value(
                "settle",
                nil,
                "DURATION",
                .duration,
                group: group,
                help: "Collect notifications until none has come for DURATION, or for ten times that at most. Each "
                    + "name is printed once, with its number of notifications as %c; a COMMAND runs once, with all names."
            ) { settings, value throws(UsageError) in
                settings.settle = try Duration(argument: value)
            },
            .value(
                "heartbeat",
                nil,
                "DURATION",
                .duration,
                group: group,
                help:
                    "Whenever nothing has come for DURATION, print a record with an empty name, or run the COMMAND "
                    + "with an empty $NOTIFY_NAME unless it is running."
            ) { settings, value throws(UsageError) in
                let duration = try Duration(argument: value)
                guard duration >= .milliseconds(1) else { throw UsageError("\(value.quoted) is too short") }
                settings.heartbeat = duration
            },
            .value(
                "suspension-behavior",
                nil,
                "VALUE",
                .choice(["drop", "coalesce", "hold", "deliver-immediately"]),
                group: group,
                help:
                    "Accepted and ignored: drop, coalesce, hold or deliver-immediately makes no difference to what an "
                    + "observer receives."
            ) { _, _ in },
        ]
    }

    private static var retry: [Option<WaitSettings>] {
        [
            .flag("retry", group: "Bus", help: "Wait for the bus if it is not there yet.") { $0.retries = true },
            .flag(
                "exit-with-bus",
                group: "Bus",
                help: "Exit with status 69 once nothing has listened at the bus's address for 3 s."
            ) { $0.exitsWithBus = true },
        ]
    }

    private static var ending: [Option<WaitSettings>] {
        let group = "Exiting"
        return [
            .value(
                "count",
                "n",
                "N",
                .number,
                group: group,
                help: "Exit after N notifications (default: 1), or with --settle after N times that they have settled."
            ) { settings, value throws(UsageError) in
                guard let string = value.string, let count = Int(string), count > 0 else {
                    throw UsageError("\(value.quoted) is not a count; use a whole number, 1 or greater")
                }
                settings.count = count
            },
            .flag("follow", "f", group: group, help: "Keep waiting until a signal or the timeout.") {
                $0.follows = true
            },
            .flag("all", group: group, help: "Exit once each NAME has been posted.") { $0.wantsAll = true },
            .timeout(
                group: group,
                help: "Exit with status 2 after DURATION, which includes waiting for the bus and for the reader of the "
                    + "output. Examples: 500ms, 2s, 1h30m, 1d; a plain number means seconds, and 0 doesn't wait at all."
            ) { $0.timeout = $1 },
        ]
    }

    private static var output: [Option<WaitSettings>] {
        let group = "Output"
        return [
            .flag("json", group: group, help: "Print a JSON object per notification, with name, time and count.") {
                $0.isJSON = true
            },
            .value(
                "format",
                nil,
                "FORMAT",
                group: group,
                help: "Print FORMAT for each notification: %n name, %t local time (RFC 3339), %c notifications so far, "
                    + "%s the name's state (or - if no agent says it), %% a percent sign; \\n, \\t, \\0 and \\\\ as in C."
            ) { settings, value throws(UsageError) in
                settings.format = try RecordFormat(parsing: value)
            },
            .flag("null", "0", group: group, help: "End each record with NUL instead of a newline.") {
                $0.endsWithNull = true
            },
        ]
    }

    private static var readiness: [Option<WaitSettings>] {
        let group = "Readiness"
        return [
            .value(
                "then",
                nil,
                "COMMAND",
                .command,
                group: group,
                help:
                    "Once the observer is live, run COMMAND with /bin/sh. If it fails before the wait is over, so does the "
                    + "wait."
            ) { $0.then = $1 },
            .value(
                "ready-fd",
                nil,
                "N",
                .number,
                group: group,
                help: "Once the observer is live, write a newline to file descriptor N (3 or higher) and close it."
            ) { settings, value throws(UsageError) in
                settings.readyDescriptor = try readyDescriptor(value)
            },
            .value(
                "ready-file",
                nil,
                "FILE",
                .file,
                group: group,
                help:
                    "Once the observer is live, create FILE atomically, containing the process ID. If FILE exists and "
                    + "is not a regular file, such as a FIFO, write to it instead. READY=1 is sent to $NOTIFY_SOCKET in "
                    + "any case."
            ) { settings, value throws(UsageError) in
                if value.count == 0 { throw UsageError("the file name is empty") }
                settings.readyFile = value
            },
        ]
    }

    private static var running: [Option<WaitSettings>] {
        let group = "Running a command"
        return [
            .flag(
                "hold",
                group: group,
                help: "Have sleep or shutdown wait until the run for org.notifybus.system.willsleep or "
                    + "org.notifybus.system.willshutdown has ended, or logind's InhibitDelayMaxSec= less half a second "
                    + "is over."
            ) { $0.holds = true },
            .value(
                "on-busy",
                nil,
                "POLICY",
                .choice(["queue", "each", "drop", "restart"]),
                group: group,
                help:
                    "What to do if the COMMAND is still running: queue (the default) runs it once more for each name "
                    + "that came, each runs it for every notification, drop skips them, restart ends it with everything that "
                    + "it has started (SIGTERM, then SIGKILL after 5 s) and runs it again."
            ) { settings, value in
                settings.onBusy =
                    value == "each" ? .each : value == "drop" ? .drop : value == "restart" ? .restart : .queue
            },
        ]
    }

    /// Checked before we open anything ourselves, so that a descriptor that is open must come from the parent.
    private static func readyDescriptor(_ value: Argument) throws(UsageError) -> Int32 {
        guard let string = value.string, let descriptor = Int32(string), descriptor > STDERR_FILENO else {
            throw UsageError("\(value.quoted) is not a usable file descriptor; use 3 or higher")
        }
        if fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 {
            throw UsageError("file descriptor \(descriptor) is not open; open it, as in '\(descriptor)>ready'")
        }
        return descriptor
    }
}

/// The options of `notify-wait` as given on the command line.
struct WaitSettings: CommonSettings {
    enum OnBusy {
        case queue, each, drop, restart
    }

    var common = CommonOptions()

    /// Whether each operand is a name, as it stands.
    var isLiteral = false
    var count: Int?
    var follows = false
    var wantsAll = false
    var timeout: Duration?
    /// How long no notification must come before those that have come are handled together.
    var settle: Duration?
    /// How long nothing must come before that is said.
    var heartbeat: Duration?
    /// Whether to wait for a bus that does not exist yet.
    var retries = false
    /// Whether to exit once the bus has ended.
    var exitsWithBus = false

    var isJSON = false
    var format: RecordFormat?
    var endsWithNull = false

    var readyDescriptor: Int32?
    var readyFile: Argument?
    var then: Argument?

    /// Whether sleep and shutdown wait for the command.
    var holds = false
    var onBusy: OnBusy?
    /// The command to run for each notification, with its arguments.
    var command: [Argument]?

    /// Whether notifications are written to standard output. With a command its own output matters, so names are
    /// printed only on request.
    var printsNames: Bool {
        if common.verbosity == .quiet { return false }
        return command == nil || shapesRecords || common.verbosity == .verbose
    }

    private var shapesRecords: Bool {
        isJSON || format != nil || endsWithNull
    }

    /// Throws if two options contradict each other.
    func check() throws(UsageError) {
        if count != nil && follows {
            throw UsageError("--count and --follow can't be used together")
        }
        if wantsAll && (count != nil || follows) {
            throw UsageError("--all and \(follows ? "--follow" : "--count") can't be used together")
        }
        if isJSON && format != nil {
            throw UsageError("--json and --format can't be used together")
        }
        if common.verbosity == .quiet && shapesRecords {
            throw UsageError("--quiet prints no names, so it can't be used with --json, --format or --null")
        }
        if let command, command.isEmpty {
            throw UsageError("no command after '--'")
        }
        if holds && command == nil {
            throw UsageError("--hold requires a command after '--'")
        }
        if onBusy != nil && command == nil {
            throw UsageError("--on-busy requires a command after '--'")
        }
    }
}

extension Program {
    package static var notifyWait: Program { Program(WaitCommand.command, run: WaitCommand.run) }
}
