// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyBus

/// The program's arguments, and what they do.
package struct BridgeCommand: Equatable {
    /// The version of NotifyBus that this bridge belongs to.
    package static let version = "1.0.0-beta.1"

    package var configuration: String?
    package var checks = false
    package var bus: NotifyCenter.Bus?
    package var level = Log.Level.normal
    private var answer: String?

    /// What is wrong with the arguments.
    package struct UsageError: Error, Equatable {
        package let reason: String
    }

    package init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            var name = argument
            var attached: String?
            if argument.utf8.starts(with: "--".utf8), let equals = argument.firstIndex(of: "=") {
                name = String(argument[..<equals])
                attached = String(argument[argument.index(after: equals)...])
            }
            func value() throws(UsageError) -> String {
                guard let value = attached ?? rest.popFirst(), !value.isEmpty else {
                    throw UsageError(reason: "\(name) needs a value")
                }
                attached = nil
                return value
            }
            switch name {
            case "--config": configuration = try value()
            case "--check": checks = true
            case "--session": try choose(.session)
            case "--system": try choose(.system)
            case "--address": try choose(.address(try value()))
            case "-q", "--quiet": level = .quiet
            case "-v", "--verbose": level = .verbose
            case "-h", "--help": answer = Self.help
            case "--version": answer = "notify-bridge (NotifyBus) \(Self.version)\n"
            default: throw UsageError(reason: "there is no option '\(argument)'")
            }
            if attached != nil { throw UsageError(reason: "\(name) takes no value") }
        }
    }

    private mutating func choose(_ bus: NotifyCenter.Bus) throws(UsageError) {
        if let other = self.bus, other != bus {
            throw UsageError(reason: "a bridge serves one bus; keep one of --session, --system and --address")
        }
        self.bus = bus
    }

    /// - Returns: the exit status: see notify-bridge(8).
    package static func run(_ arguments: [String]) -> Int32 {
        do {
            return try BridgeCommand(arguments).run()
        } catch {
            Log(.quiet).error("\(error.reason); see notify-bridge --help")
            return ExitStatus.usage
        }
    }

    private func run() -> Int32 {
        let log = Log(level)
        if let answer {
            print(answer, terminator: "")
            return 0
        }
        let bus = bus ?? Self.busInEnvironment
        do {
            let settings = try read(for: bus)
            // libmosquitto reads the certificates and keys.
            _ = try MosquittoClient(id: "nb1-check", settings: settings)
            let state = try StateFolder(forSystem: bus == .system)
            if checks { return 0 }
            return Bridge.run(settings, on: bus, state: state, log)
        } catch {
            log.error(error.description)
            return ExitStatus.failed
        }
    }

    private func read(for bus: NotifyCenter.Bus) throws(ConfigurationError) -> Settings {
        guard let file = configuration ?? ConfigurationFile.find(forSystem: bus == .system) else {
            let places = ConfigurationFile.places(forSystem: bus == .system).joined(separator: ", ")
            throw ConfigurationError("There is no configuration, so nothing may cross: write one of \(places).")
        }
        return try ConfigurationFile.read(file)
    }

    private static var busInEnvironment: NotifyCenter.Bus {
        switch Environment["NOTIFYBUS_ADDRESS"] {
        case nil, "session": .session
        case "system": .system
        case let address?: .address(address)
        }
    }

    private static let help = """
        Usage: notify-bridge [OPTION]...

        Carries notifications between this machine's bus and an MQTT broker: the names that bridge.conf lists.

        Configuration:
          --config FILE      Read the settings from there, not from the first notifybus/bridge.conf in
                             $XDG_CONFIG_HOME or $XDG_CONFIG_DIRS, with --system in /etc.
          --check            Only say whether the settings are in order.

        Bus:
          --session          The bus of the login session, the default without $NOTIFYBUS_ADDRESS.
          --system           The bus of the whole machine.
          --address ADDRESS  The bus at this D-Bus address.

        Other:
          -q, --quiet        Say only why it ends.
          -v, --verbose      Say each name that crosses, too.
          -h, --help         Say this.
          --version          Say the version.

        notify-bridge(8) describes bridge.conf.

        """
}
