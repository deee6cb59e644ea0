// SPDX-License-Identifier: Apache-2.0

import CommandSupport

extension LifecycleCommand {
    static let command = Command<LifecycleSettings>(
        name: "notify-lifecycle",
        usage: [
            "list|status|launches|watch [OPTION]...",
            "foreground|background|resume [OPTION]... TARGET...",
            "suspend [--freeze] [OPTION]... TARGET...",
            "release [OPTION]... [TARGET]...",
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
            .flag("json", group: group, help: "With list, status, launches and watch: print one JSON object per line.")
            {
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
