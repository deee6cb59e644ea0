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
                    throw UsageError(reason: "option '\(name)' requires a value")
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
            default: throw UsageError(reason: "unknown option '\(argument)'")
            }
            if attached != nil { throw UsageError(reason: "option '\(name)' doesn't take a value") }
        }
    }

    private mutating func choose(_ bus: NotifyCenter.Bus) throws(UsageError) {
        if let other = self.bus, other != bus {
            throw UsageError(reason: "use only one of --session, --system and --address")
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
            throw ConfigurationError("There is no configuration, so no name may cross: create one of \(places).")
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

        Carries notifications between a bus of this machine and an MQTT broker. Only the
        names that bridge.conf lists cross. See notify-bridge(8).

        Configuration:
              --config FILE       Read settings from FILE instead of
                                  notifybus/bridge.conf in $XDG_CONFIG_HOME or
                                  $XDG_CONFIG_DIRS (with --system, in /etc).
              --check             Check the settings and exit.

        Bus:
              --session           Use the session bus (the default unless
                                  $NOTIFYBUS_ADDRESS is set).
              --system            Use the system bus.
              --address ADDRESS   Use the bus at this D-Bus address.

        Other:
          -q, --quiet             Log only why it exits.
          -v, --verbose           Also log each name that crosses.
          -h, --help              Show this help.
              --version           Show the version.

        Exit status:
          0                       A signal stopped it, or --check found no error.
          1                       The configuration is wrong, the broker refused this
                                  bridge, or another one serves the bus.
          64                      The command line was invalid.
          69                      There is no bus, or it went away.

        """
}
