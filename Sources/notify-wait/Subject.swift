// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// What is waited for.
enum Subject {
    case names([NotifyName])
    case prefixes([String])

    /// A name may be given twice: the center observes it once.
    init(_ operands: [Argument], arePrefixes: Bool) throws(UsageError) {
        if operands.isEmpty {
            throw UsageError("no name given; try 'notify-wait com.example.done'")
        }
        if arePrefixes {
            var prefixes: [String] = []
            for operand in operands {
                guard let prefix = operand.string, prefix.utf8.count <= 511 else {
                    throw UsageError("\(operand.quoted) is not a valid prefix; use at most 511 bytes of UTF-8")
                }
                prefixes.append(prefix)
            }
            self = .prefixes(prefixes)
            return
        }
        var names: [NotifyName] = []
        for operand in operands {
            names.append(try NotifyName(operand: operand))
        }
        self = .names(names)
    }

    /// The names, each once, in command-line order; none for prefixes.
    var names: [NotifyName] {
        guard case .names(let names) = self else { return [] }
        var seen: Set<NotifyName> = []
        return names.filter { seen.insert($0).inserted }
    }

    /// The same for the library.
    var ofCenter: NotifyCenter.Subject {
        switch self {
        case .names(let names): .names(names)
        case .prefixes(let prefixes): .prefixes(prefixes)
        }
    }
}
