// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The parsed command line.
enum StateRequest {
    case get([NotifyName])
    case set(NotifyName, UInt64)
    /// What is added, and whether it is subtracted instead.
    case add(NotifyName, UInt64, isNegative: Bool)
    case swap(NotifyName, UInt64, UInt64)
    case wait(NotifyName)
    case watch([NotifyName])

    init(_ operands: Operands, _ settings: StateSettings) throws(UsageError) {
        var rest = operands.beforeDashes
        var verb = StateVerb.get
        if let first = rest.first,
            let found = StateVerb.allCases.first(where: { first.bytes.elementsEqual($0.rawValue.utf8) })
        {
            verb = found
            rest.removeFirst()
        }
        rest += operands.afterDashes ?? []
        // Only in place of the value a negative number is taken for an operand, to say what is wrong with it.
        let mayBeNumber = verb == .set || verb == .add ? rest.dropFirst().first : nil
        for operand in operands.beforeDashes
        where operand.bytes.first == UInt8(ascii: "-") && operand.start != mayBeNumber?.start {
            throw UsageError("unknown option \(operand.quoted); see 'notify-state --help'")
        }
        if settings.posts, verb != .set, verb != .add, verb != .swap {
            throw UsageError("--post can only be used with 'set', 'add' and 'swap'")
        }
        if settings.condition != nil, verb != .wait { throw UsageError("--is and --not can only be used with 'wait'") }
        switch verb {
        case .get: self = .get(try StateRequest.names(rest, settings))
        case .watch: self = .watch(try StateRequest.names(rest, settings))
        case .wait:
            let names = try StateRequest.names(rest, settings)
            guard names.count == 1 else { throw UsageError("'wait' takes one name, not \(names.count)") }
            self = .wait(names[0])
        case .set:
            guard rest.count == 2 else {
                throw UsageError("'set' takes a name and a value, as in 'notify-state set com.example.battery 80'")
            }
            let value = try StateValue.parse(rest[1])
            self = .set(try StateRequest.names([rest[0]], settings)[0], value)
        case .add:
            guard rest.count == 2 else {
                throw UsageError("'add' takes a name and a number, as in 'notify-state add com.example.jobs -1'")
            }
            let isNegative = rest[1].bytes.first == UInt8(ascii: "-")
            let amount = try StateValue.parse(isNegative ? rest[1].dropFirst(1) : rest[1])
            self = .add(try StateRequest.names([rest[0]], settings)[0], amount, isNegative: isNegative)
        case .swap:
            guard rest.count == 3 else {
                throw UsageError("'swap' takes a name and two values, as in 'notify-state swap com.example.turn 0 1'")
            }
            let (old, new) = (try StateValue.parse(rest[1]), try StateValue.parse(rest[2]))
            self = .swap(try StateRequest.names([rest[0]], settings)[0], old, new)
        }
    }

    private static func names(_ operands: [Argument], _ settings: StateSettings) throws(UsageError) -> [NotifyName] {
        if operands.isEmpty { throw UsageError("no name given; try 'notify-state com.example.battery'") }
        var names: [NotifyName] = []
        for operand in operands {
            names.append(try NotifyName(operand: operand, isLiteral: settings.isLiteral))
        }
        return names
    }
}
