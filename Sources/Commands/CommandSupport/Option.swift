// SPDX-License-Identifier: Apache-2.0

/// One option of a command: its names, its value, its meaning and its effect.
///
/// Everything about an option is defined here, once; parsing, `--help`, manual pages and completions are derived from
/// it.
///
/// A custom parser, because swift-argument-parser pulls in FoundationEssentials and adds about 1.5 ms to the start-up
/// time, as much as everything else that `notify-post` does.
package struct Option<Settings>: Sendable {
    /// The kind of an option's value, for help and completion.
    package struct Value: Sendable {
        package enum Kind: Sendable {
            case text, number, duration, file
            /// A command line for the shell.
            case command
            case choice([String])
        }

        /// The placeholder for the value in the help, such as `FILE`.
        package let name: String
        package let kind: Kind
    }

    package typealias Apply = @Sendable (inout Settings) throws(UsageError) -> Void
    package typealias ApplyValue = @Sendable (inout Settings, Argument) throws(UsageError) -> Void

    package enum Action: Sendable {
        case flag(Apply)
        case value(Value, ApplyValue)
    }

    /// The long name, without the dashes.
    package let long: String
    package let short: Unicode.Scalar?
    /// Its heading in the help.
    package let group: String
    package let help: String
    package let action: Action

    /// An option that takes no value.
    package static func flag(
        _ long: String,
        _ short: Unicode.Scalar? = nil,
        group: String,
        help: String,
        _ apply: @escaping Apply
    ) -> Option {
        Option(long: long, short: short, group: group, help: help, action: .flag(apply))
    }

    /// An option that requires a value.
    package static func value(
        _ long: String,
        _ short: Unicode.Scalar? = nil,
        _ name: String,
        _ kind: Value.Kind = .text,
        group: String,
        help: String,
        _ apply: @escaping ApplyValue
    ) -> Option {
        let action = Action.value(Value(name: name, kind: kind), apply)
        return Option(long: long, short: short, group: group, help: help, action: action)
    }

    /// The value that it takes, if it takes one.
    package var value: Value? {
        if case .value(let value, _) = action { value } else { nil }
    }
}
