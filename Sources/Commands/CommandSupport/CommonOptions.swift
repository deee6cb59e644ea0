// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// The values of the options that every command has.
package struct CommonOptions: Sendable {
    package enum Verbosity: Sendable {
        case quiet, normal, verbose
    }

    package enum Question: Sendable {
        case help, version
    }

    private var option: NotifyCenter.Bus?
    package var verbosity = Verbosity.normal
    /// `--help` or `--version`, which are answered instead of running the command.
    package var question: Question?

    package init() {}

    /// The bus chosen by an option or else by `NOTIFYBUS_ADDRESS`; nil if neither names one.
    package var bus: NotifyCenter.Bus? { option ?? .inEnvironment }

    package var notifyBus: NotifyCenter.Bus { bus ?? .session }

    fileprivate mutating func choose(_ bus: NotifyCenter.Bus) throws(UsageError) {
        if let option, option != bus {
            throw UsageError("use only one of --session, --system and --address")
        }
        option = bus
    }
}

/// The settings of a command, including the common ones.
package protocol CommonSettings: Sendable {
    var common: CommonOptions { get set }
}

extension Option {
    /// `--timeout`, `-t`: how long something may take.
    package static func timeout(
        group: String,
        help: String,
        _ set: @escaping @Sendable (inout Settings, Duration) -> Void
    ) -> Option {
        .value("timeout", "t", "DURATION", .duration, group: group, help: help) { settings, value throws(UsageError) in
            set(&settings, try Duration(argument: value))
        }
    }
}

extension Option where Settings: CommonSettings {
    /// The options that every command has.
    ///
    /// - Parameter quiet: what `-q` silences in this command.
    /// - Parameter verbose: what `-v` adds in this command.
    package static func common(quiet: String, verbose: String) -> [Option] {
        let bus = "Bus"
        let other = "Other"
        return [
            .flag("session", group: bus, help: "Use the session bus (the default unless $NOTIFYBUS_ADDRESS is set).") {
                settings throws(UsageError) in
                try settings.common.choose(.session)
            },
            .flag("system", group: bus, help: "Use the system bus.") { settings throws(UsageError) in
                try settings.common.choose(.system)
            },
            .value("address", nil, "ADDRESS", group: bus, help: "Use the bus at this D-Bus address.") {
                settings,
                value throws(UsageError) in
                guard let address = value.string, !address.isEmpty else {
                    throw UsageError("expected an address such as unix:path=/run/user/1000/bus")
                }
                try settings.common.choose(.address(address))
            },
            .flag("quiet", "q", group: other, help: quiet) { $0.common.verbosity = .quiet },
            .flag("verbose", "v", group: other, help: verbose) { $0.common.verbosity = .verbose },
            .flag("help", "h", group: other, help: "Show this help.") { $0.common.question = .help },
            .flag("version", group: other, help: "Show the version.") { $0.common.question = .version },
        ]
    }
}
