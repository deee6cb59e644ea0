// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

extension WaitCommand {
    static let command = Command<WaitSettings>(
        name: "notify-wait",
        usage: ["[OPTION]... NAME... [-- COMMAND [ARG]...]"],
        summary: [
            "Waits until one of the NAMEs is posted, prints it and ends. Whoever must know when to post learns from "
                + "--then, --ready-fd, --ready-file or READY=1 that the observer is live: nothing posted after that is "
                + "missed.",
            "With a COMMAND it runs that at each notification, one run at a time, with the name in $NOTIFY_NAME and the "
                + "number of notifications so far in $NOTIFY_COUNT, with --settle all names in $NOTIFY_NAMES, one a line. "
                + "It prints names only if -v, --json, --format or -0 asks for them. At the end it waits for the commands "
                + "that are still to run, also after a timeout.",
        ],
        options: subject + ending + output + readiness + running + retry
            + Option.common(
                quiet: "Prints no names, and on standard error nothing but errors.",
                verbose: "Says on standard error when the observer is live; prints names also with a COMMAND."
            ),
        operands: .names,
        runsCommand: true,
        exitStatus: [
            ("0", "What was waited for has come, or nobody reads the output any more."),
            ("1", "Something failed."),
            ("2", "The time was over first."),
            ("64", "The command line was wrong."),
            ("69", "There is no bus."),
            (
                "N",
                "A COMMAND or the one of --then failed: the status of the last one that did, 128 and the number of "
                    + "the signal that killed it, or 127 or 126 if it can't be found or run."
            ),
            ExitCode.killed,
        ],
        examples: [
            "notify-wait com.example.backup.done -t 10m",
            "notify-wait com.example.pong -t 2s --then 'notify-post com.example.ping'",
            "notify-wait -f --prefix com.example. --format '%t %n'",
            "notify-wait -f com.example.config.changed --settle 200ms -- make site",
        ]
    )

    private static var subject: [Option<WaitSettings>] {
        let group = "What it waits for"
        return [
            .flag("prefix", group: group, help: "Takes each NAME as the beginning of names; '' is all names.") {
                $0.isPrefix = true
            },
            .value(
                "settle",
                nil,
                "DURATION",
                .duration,
                group: group,
                help: "Takes as one what comes until nothing has come for this long, ten times that at the most. Each "
                    + "name is printed once, with how often it came for %c; a COMMAND runs once, with all names."
            ) { settings, value throws(UsageError) in
                settings.settle = try Duration(argument: value)
            },
            .value(
                "suspension-behavior",
                nil,
                "VALUE",
                .choice(["drop", "coalesce", "hold", "deliver-immediately"]),
                group: group,
                help:
                    "Accepted and ignored, whether it is drop, coalesce, hold or deliver-immediately: what an observer "
                    + "gets does not depend on it."
            ) { _, _ in },
        ]
    }

    private static var retry: [Option<WaitSettings>] {
        [
            .flag("retry", group: "Bus", help: "Waits for a bus that is not there yet.") { $0.retries = true }
        ]
    }

    private static var ending: [Option<WaitSettings>] {
        let group = "When it ends"
        return [
            .value("count", "n", "N", .number, group: group, help: "After N notifications; 1 if not given.") {
                settings,
                value throws(UsageError) in
                guard let string = value.string, let count = Int(string), count > 0 else {
                    throw UsageError("\(value.quoted) is no count; write a whole number from 1 up")
                }
                settings.count = count
            },
            .flag("follow", "f", group: group, help: "Never by itself: goes on until a signal or the timeout.") {
                $0.follows = true
            },
            .flag("all", group: group, help: "When each NAME has been posted at least once.") { $0.wantsAll = true },
            .timeout(
                group: group,
                help: "With status 2 when this long has passed, the wait for the bus included: 500ms, 2s, 1h30m, 1d; a "
                    + "number alone is seconds, and 0 doesn't wait at all."
            ) { $0.timeout = $1 },
        ]
    }

    private static var output: [Option<WaitSettings>] {
        let group = "What it prints"
        return [
            .flag("json", group: group, help: "An object a notification, with name, time and count.") {
                $0.isJSON = true
            },
            .value(
                "format",
                nil,
                "FORMAT",
                group: group,
                help: "This for each notification: %n name, %t local time (RFC 3339), %c notifications so far, %s the "
                    + "name's state, or - without an agent, %% a percent sign; \\n, \\t, \\0 and \\\\ as in C."
            ) { settings, value throws(UsageError) in
                settings.format = try RecordFormat(parsing: value)
            },
            .flag("null", "0", group: group, help: "Ends each record with NUL in place of a newline.") {
                $0.endsWithNull = true
            },
        ]
    }

    private static var readiness: [Option<WaitSettings>] {
        let group = "When the observer is live"
        return [
            .value(
                "then",
                nil,
                "COMMAND",
                .command,
                group: group,
                help: "Runs this with /bin/sh; if it fails, so does the wait."
            ) { $0.then = $1 },
            .value(
                "ready-fd",
                nil,
                "N",
                .number,
                group: group,
                help: "Writes a newline to file descriptor N, which is 3 or more, and closes it."
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
                    "Puts FILE in place, whole, with the process id in it; what is there and no regular file, such as a "
                    + "FIFO, is written into. $NOTIFY_SOCKET gets READY=1 in any case."
            ) { settings, value throws(UsageError) in
                if value.count == 0 { throw UsageError("a file needs a name") }
                settings.readyFile = value
            },
        ]
    }

    private static var running: [Option<WaitSettings>] {
        let group = "Running a command"
        return [
            .value(
                "on-busy",
                nil,
                "POLICY",
                .choice(["queue", "each", "drop", "restart"]),
                group: group,
                help:
                    "If the COMMAND is still running: queue runs it once more for each name that came (the default), "
                    + "each for each notification, drop doesn't, restart ends it (SIGTERM, after 5 s SIGKILL) and runs "
                    + "it again."
            ) { settings, value in
                settings.onBusy =
                    value == "each" ? .each : value == "drop" ? .drop : value == "restart" ? .restart : .queue
            }
        ]
    }

    /// Looked at before anything is opened, when a number that the parent didn't open can't be one of ours.
    private static func readyDescriptor(_ value: Argument) throws(UsageError) -> Int32 {
        guard let string = value.string, let descriptor = Int32(string), descriptor > STDERR_FILENO else {
            throw UsageError("\(value.quoted) is no file descriptor that can be spared; write a number from 3 up")
        }
        if fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 {
            throw UsageError("file descriptor \(descriptor) is not open; open it, as in '\(descriptor)>ready'")
        }
        return descriptor
    }
}
