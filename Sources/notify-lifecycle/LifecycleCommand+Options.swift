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
            "Shows which observers on the bus are in the foreground, in the background or suspended, as the lifecycle "
                + "agent knows it, and changes that. A change is in force when the command ends, and counts for more than what "
                + "the program says itself and what the desktop says, until it is released.",
            "A TARGET is pid:N, all observers of process N (N alone means the same); :1.N, the one observer that the "
                + "bus calls so; or app:ID, all observers of an application. Only root may change observers of other "
                + "users.",
        ],
        subcommands: Verb.allCases.map { ($0.rawValue, $0.meaning) },
        options: own
            + Option.common(
                quiet: "Leaves out the table's header, and says nothing but errors on standard error.",
                verbose:
                    "Shows connections, users, the focus and names too; with watch also what the agent learns; says how many "
                    + "observers a change was for."
            ),
        operands: .targets(after: Verb.allCases.filter(\.takesTargets).map(\.rawValue)),
        exitStatus: [
            ("0", "Done, or nobody reads the output any more."),
            ("1", "The agent refused, there is no such TARGET, or something else failed."),
            ("2", "An observer did not follow, or the agent did not answer, in time."),
            ("64", "The command line was wrong; nothing was changed."),
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
        let group = "What it does"
        return [
            .flag("json", group: group, help: "With list, status, launches and watch: prints JSON, an object a line.") {
                $0.isJSON = true
            },
            .flag(
                "freeze",
                group: group,
                help: "With suspend: stops the processes as well. Resume lets them go on."
            ) { $0.freezes = true },
            .timeout(
                group: group,
                help: "How long to wait for each answer of the agent: 500ms, 2s, 1m; 10s if not given."
            ) { $0.timeout = $1 },
        ]
    }
}
