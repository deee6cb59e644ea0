// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The target of a state change.
enum TargetOrEveryone {
    /// Everything.
    case everyone
    case one(Target)

    /// In the agent's notation.
    var text: String {
        switch self {
        case .everyone: ""
        case .one(let target): target.description
        }
    }

    /// For display.
    var title: String {
        switch self {
        case .everyone: "everyone"
        case .one(let target): target.description
        }
    }

    init(_ argument: Argument) throws(UsageError) {
        // A plain number is a process.
        guard let text = argument.string, let target = Target(text) ?? Target("pid:" + text),
            TargetOrEveryone.mayBe(target)
        else {
            throw UsageError(
                "\(argument.quoted) is not a TARGET; use pid:N for a process, :1.N for a connection or app:ID for an "
                    + "application"
            )
        }
        self = .one(target)
    }

    /// Both bus daemons make unique names of two numbers, so a typo can be reported before asking the agent.
    private static func mayBe(_ target: Target) -> Bool {
        guard case .connection(let name) = target else { return true }
        let parts = name.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 2
            && parts.allSatisfy { part in
                !part.isEmpty && part.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            }
    }
}
