// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension BusValue {
    /// The value in readable form, on one line.
    package var readable: String {
        switch self {
        case .number(UInt8(ascii: "b"), let value): value == 0 ? "no" : "yes"
        case .number: integer
        case .double(let value): String(value)
        case .text(_, let value): value.isEmpty ? "-" : Printable.text(value)
        case .descriptor: "a descriptor"
        case .array(_, let values) where values.isEmpty: "none"
        case .array(let element, let values) where element.hasPrefix("{"):
            values.map(\.readable).sorted().joined(separator: ", ")
        case .array(_, let values): values.map(\.readable).joined(separator: ", ")
        case .structure(let values): "(" + values.map(\.readable).joined(separator: ", ") + ")"
        case .entry(let key, let value): key.readable + " " + value.readable
        case .variant(let value): value.readable
        }
    }

    /// The digits of an integer; negative ones come as bit patterns.
    package var integer: String {
        switch self {
        case .number(UInt8(ascii: "n"), let value): String(Int16(truncatingIfNeeded: value))
        case .number(UInt8(ascii: "i"), let value): String(Int32(truncatingIfNeeded: value))
        case .number(UInt8(ascii: "x"), let value): String(Int64(truncatingIfNeeded: value))
        case .number(_, let value): String(value)
        default: "0"
        }
    }
}
