// SPDX-License-Identifier: Apache-2.0

import CommandSupport

struct AgentSettings: CommonSettings {
    var common = CommonOptions()
    var replaces = false
    var checks = false
    var opensRelay = false
    var thaws = false
    var configurationFile: Argument?
}

extension AgentCommand {
    static let command = Command<AgentSettings>(
        name: "notify-agent",
        usage: ["[OPTION]..."],
        summary: [
            "Serves org.notifybus.Agent1 on a bus: keeps track of which observers are in the foreground, in the background "
                + "or suspended, and keeps stopped ones from clogging the bus. Posts do not pass through it.",
            "Runs until SIGTERM or SIGINT, until another agent replaces it, or until the bus goes away. Usually started "
                + "by the bus or the service manager.",
        ],
        options: [
            .flag("replace", group: "Agent", help: "Replace an agent that is already running.") {
                $0.replaces = true
            },
            .value(
                "config",
                nil,
                "FILE",
                .file,
                group: "Agent",
                help:
                    "Read settings from FILE instead of notifybus/agent.conf in $XDG_CONFIG_HOME or $XDG_CONFIG_DIRS "
                    + "(with --system, in /etc)."
            ) {
                $0.configurationFile = $1
            },
            .flag(
                "relay",
                group: "Agent",
                help:
                    "Have the bus's agent, which is started if necessary, serve org.notifybus.Relay1 for programs in "
                    + "sandboxes, and exit. The bus runs this."
            ) {
                $0.opensRelay = true
            },
            .flag(
                "thaw",
                group: "Agent",
                help:
                    "Wait for the end of standard input, thaw everything that was frozen by agents that no longer run, and "
                    + "exit. The agent and its unit run this, in case the agent is killed."
            ) {
                $0.thaws = true
            },
            .flag(
                "check",
                group: "Agent",
                help:
                    "Check agent.conf, nap.conf and the files in launch.d: print each error with its file and line, and what "
                    + "each entry of launch.d starts, and exit. No bus is needed."
            ) {
                $0.checks = true
            },
        ]
            + Option.common(
                quiet: "Log only problems.",
                verbose: "Log every connection that comes and goes."
            ),
        exitStatus: [
            ("0", "A signal stopped it, or another agent replaced it; or --check found no error."),
            ("1", "Another agent is running, FILE can't be read, --check found an error, or something else failed."),
            ("64", "The command line was invalid."),
            ("69", "There is no bus, it went away, or it did not answer for 25 s, or for 10 s when connecting."),
        ],
        examples: ["notify-agent", "notify-agent --replace -v"]
    )
}
