// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import NotifyCore

struct BridgeSettings: CommonSettings {
    var common = CommonOptions()
    var configurationFile: Argument?
    var checks = false
}

/// `notify-bridge`: the bridge as a program.
enum BridgeCommand {
    static func run(_ arguments: [Argument]) -> ExitCode {
        if ConnectionProcess.isWanted(arguments) { return ConnectionProcess.run() }
        var diagnostics = Diagnostics(command: command.name)
        var settings = BridgeSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, _ throws(UsageError) in
            if let operand = operands.beforeDashes.first ?? operands.afterDashes?.first {
                throw UsageError("unexpected argument \(operand.quoted); '\(command.name)' takes only options")
            }
        }
        if case .failure(let end) = beginning { return end.code }
        do throws(ConfigurationError) {
            let bus = settings.common.notifyBus
            let configuration = try BridgeConfiguration(ConfigurationFile(file(in: settings)))
            for name in configuration.exports.names.union(configuration.imports.names).sorted(by: {
                $0.string < $1.string
            }) {
                if let mistake = NameMistake.asterisk(in: name) { diagnostics.notice(mistake) }
            }
            // libmosquitto reads the certificates and keys.
            _ = try MosquittoClient(BrokerLogin(id: "nb1-check", configuration))
            let state = try StateFolder(for: bus)
            return settings.checks ? .done : Bridge.run(configuration, on: bus, state, diagnostics)
        } catch {
            diagnostics.error(error.description)
            return .failed
        }
    }

    private static func file(in settings: BridgeSettings) throws(ConfigurationError) -> Argument {
        let (name, bus) = ("bridge.conf", settings.common.bus)
        if let file = settings.configurationFile ?? ConfigurationFile.find(name, for: bus) { return file }
        let places = ConfigurationFile.places(of: name, for: bus).joined(separator: ", ")
        throw ConfigurationError("There is no configuration, so no name may cross: create one of \(places).")
    }

    static let command = Command<BridgeSettings>(
        name: "notify-bridge",
        usage: ["[OPTION]..."],
        summary: [
            "Carries notifications between a bus of this machine and an MQTT broker. Only the names that bridge.conf lists "
                + "cross.",
            "Runs until SIGTERM, SIGINT or SIGHUP, or until the bus goes away. An unreachable broker does not end it.",
        ],
        options: [
            .value(
                "config",
                nil,
                "FILE",
                .file,
                group: "Configuration",
                help:
                    "Read settings from FILE instead of notifybus/bridge.conf in $XDG_CONFIG_HOME or $XDG_CONFIG_DIRS "
                    + "(with --system, in /etc)."
            ) {
                $0.configurationFile = $1
            },
            .flag("check", group: "Configuration", help: "Check the settings and exit.") { $0.checks = true },
        ]
            + Option.common(quiet: "Log only why it exits.", verbose: "Also log each name that crosses."),
        exitStatus: [
            ("0", "A signal stopped it, or --check found no error."),
            (
                "1",
                "The configuration is wrong, the broker refused this bridge (a wrong password, no authorization, no MQTT 5), "
                    + "its limit is too small for any name, or another bridge serves this bus."
            ),
            ("64", "The command line was invalid."),
            ("69", "There is no bus, it went away, or it did not answer for 25 s, or for 10 s when connecting."),
        ],
        examples: ["notify-bridge --check", "notify-bridge -v"]
    )
}

extension Program {
    package static var notifyBridge: Program { Program(BridgeCommand.command, run: BridgeCommand.run) }
}
