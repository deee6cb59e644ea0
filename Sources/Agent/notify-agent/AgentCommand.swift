// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import NotifyAgent
import NotifyCore

/// `notify-agent`: the lifecycle agent as a program.
enum AgentCommand {
    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = AgentSettings()
        var configuration = Agent.Configuration()
        do throws(UsageError) {
            let operands = try command.parse(arguments, into: &settings)
            if let question = settings.common.question { return command.answer(question) }
            if let operand = operands.beforeDashes.first ?? operands.afterDashes?.first {
                throw UsageError("unexpected argument \(operand.quoted); '\(command.name)' takes only options")
            }
        } catch {
            diagnostics.error(error.message)
            return .usage
        }
        if settings.opensRelay { return RelayRequest.run(settings, diagnostics) }
        if settings.thaws {
            Thawing.run(servesMachine: settings.common.bus == .system)
            return .done
        }
        if settings.checks { return ConfigurationCheck.run(settings, diagnostics) }
        do throws(ConfigurationError) {
            try configuration.read(settings.configurationFile, for: settings.common.bus)
        } catch {
            diagnostics.error(error.description)
            return .failed
        }
        NapFile.readDefault(for: settings.common.bus, into: &configuration)
        diagnostics.verbosity = settings.common.verbosity
        configuration.replaces = settings.replaces
        configuration.version = notifyBusVersion
        configuration.ownProgram = "/proc/self/exe"
        let level: Logger.Level =
            switch settings.common.verbosity {
            case .quiet: .warning
            case .normal: .notice
            case .verbose: .debug
            }
        let logger = Logger.toStandardError(of: command.name, level: level)
        for fault in configuration.faults { logger.warning("ignored a mistake in the settings: \(fault)") }
        return AgentRunner.run(settings, configuration, logger, diagnostics)
    }
}

extension Program {
    package static var notifyAgent: Program { Program(AgentCommand.command, run: AgentCommand.run) }
}
