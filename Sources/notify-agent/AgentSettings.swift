// SPDX-License-Identifier: Apache-2.0

import CommandSupport

struct AgentSettings: CommonSettings {
    var common = CommonOptions()
    var replaces = false
    var checks = false
    var configurationFile: Argument?
}

extension AgentCommand {
    static let command = Command<AgentSettings>(
        name: "notify-agent",
        usage: ["[OPTION]..."],
        summary: [
            "Serves org.notifybus.Agent1 on a bus: knows which observers of notifications are in the foreground, in the "
                + "background or suspended, and sees to it that a stopped one harms nobody. Posts do not pass through it.",
            "It runs until it gets SIGTERM or SIGINT, another agent replaces it, or the bus goes away. It is usually "
                + "started by the bus or the service manager.",
        ],
        options: [
            .flag("replace", group: "Agent", help: "Takes the place of an agent that runs already.") {
                $0.replaces = true
            },
            .value(
                "config",
                nil,
                "FILE",
                .file,
                group: "Agent",
                help:
                    "Reads settings from FILE, in place of notifybus/agent.conf in $XDG_CONFIG_HOME or $XDG_CONFIG_DIRS, "
                    + "with --system in /etc."
            ) {
                $0.configurationFile = $1
            },
            .flag(
                "check",
                group: "Agent",
                help:
                    "Reads the settings and the files of launch.d, prints each entry and each fault as FILE:LINE: what, "
                    + "and ends. No bus is needed."
            ) {
                $0.checks = true
            },
        ]
            + Option.common(
                quiet: "Logs only what goes wrong.",
                verbose: "Logs every connection that comes and goes."
            ),
        exitStatus: [
            ("0", "It was told to end, or replaced; or --check found no fault."),
            ("1", "Another agent runs, FILE is wrong, --check found a fault, or something else failed."),
            ("64", "The command line was wrong."),
            ("69", "There is no bus, or it went away."),
        ],
        examples: ["notify-agent", "notify-agent --replace -v"]
    )
}
