// SPDX-License-Identifier: Apache-2.0

/// One option of a command: what it is called, what it takes, what it means and what it does.
///
/// Everything about an option is said once, here; parsing, `--help`, manual pages and completions are made from it.
///
/// A parser of our own, because swift-argument-parser pulls in FoundationEssentials and costs about 1.5 ms at start,
/// which is as much as everything else that `notify-post` does.
package struct Option<Settings>: Sendable {
    /// What an option's value looks like, for help and completion.
    package struct Value: Sendable {
        package enum Kind: Sendable {
            case text, number, duration, file
            /// A line for the shell.
            case command
            case choice([String])
        }

        /// The word that stands for the value in the help, as `FILE`.
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
    /// The heading that it stands under in the help.
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

    /// An option that needs a value.
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
