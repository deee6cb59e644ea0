// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// A state in text form.
enum StateValue {
    static func parse(_ argument: Argument) throws(UsageError) -> UInt64 {
        let text = argument.string ?? ""
        let isHexadecimal = text.hasPrefix("0x") || text.hasPrefix("0X")
        let digits = isHexadecimal ? text.dropFirst(2) : text[...]
        // Swift would accept a sign, too.
        guard digits.utf8.first != UInt8(ascii: "+"), let value = UInt64(digits, radix: isHexadecimal ? 16 : 10) else {
            throw UsageError(
                "\(argument.quoted) is not a state; use a whole number from 0 to 18446744073709551615, or hexadecimal as in 0xff"
            )
        }
        return value
    }
}

/// The condition to wait for.
enum StateCondition {
    case equal(UInt64)
    case unequal(UInt64)

    func holds(for value: UInt64) -> Bool {
        switch self {
        case .equal(let wanted): value == wanted
        case .unequal(let unwanted): value != unwanted
        }
    }
}
