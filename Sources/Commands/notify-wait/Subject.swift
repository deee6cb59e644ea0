// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// What is waited for: names, and patterns such as `com.example.*`.
struct Subject {
    enum Item: Hashable {
        case name(NotifyName)
        case prefix(NamePrefix)

        /// As on the command line.
        var text: String {
            switch self {
            case .name(let name): name.string
            case .prefix(let prefix): prefix.pattern
            }
        }
    }

    /// Each once, in command-line order.
    let items: [Item]

    /// - Parameter isLiteral: whether each is a name, as it stands.
    init(_ operands: [Argument], isLiteral: Bool) throws(UsageError) {
        if operands.isEmpty {
            throw UsageError("no name given; try 'notify-wait com.example.done'")
        }
        var items: [Item] = []
        for operand in operands {
            if !isLiteral, let prefix = try NamePrefix(operand: operand) {
                items.append(.prefix(prefix))
            } else {
                items.append(.name(try NotifyName(operand: operand, isLiteral: isLiteral)))
            }
        }
        // Creating a set takes a twentieth of a command's start-up time.
        if items.count > 1 {
            var seen: Set<Item> = []
            items = items.filter { seen.insert($0).inserted }
        }
        self.items = items
    }

    var names: [NotifyName] {
        items.compactMap { if case .name(let name) = $0 { name } else { nil } }
    }

    var prefixes: [NamePrefix] {
        items.compactMap { if case .prefix(let prefix) = $0 { prefix } else { nil } }
    }

    /// The same for the library.
    var ofCenter: NotifySubject { NotifySubject(names: names, prefixes: prefixes) }
}
