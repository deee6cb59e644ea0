// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An argument of a D-Bus message. See the D-Bus specification, "Type System".
package enum BusValue: Hashable, Sendable {
    /// The types y, b, n, q, i, u, x and t, with their type code; negative numbers by their bit pattern.
    case number(code: UInt8, UInt64)
    case double(Double)
    /// The types s, o and g.
    case text(code: UInt8, String)
    /// A descriptor. The receiver closes it; sending leaves it open.
    case descriptor(Int32)
    case array(element: String, [BusValue])
    case structure([BusValue])
    indirect case entry(BusValue, BusValue)
    indirect case variant(BusValue)

    package static func string(_ value: String) -> BusValue { .text(code: UInt8(ascii: "s"), value) }
    package static func uint32(_ value: UInt32) -> BusValue { .number(code: UInt8(ascii: "u"), UInt64(value)) }
    package static func uint64(_ value: UInt64) -> BusValue { .number(code: UInt8(ascii: "t"), value) }
    package static func boolean(_ value: Bool) -> BusValue { .number(code: UInt8(ascii: "b"), value ? 1 : 0) }
    package static func strings(_ values: [String]) -> BusValue { .array(element: "s", values.map { .string($0) }) }

    /// The type a{sv}.
    package static func dictionary(_ values: [(String, BusValue)]) -> BusValue {
        .array(element: "{sv}", values.map { .entry(.string($0), .variant($1)) })
    }

    /// The signature of the type.
    package var signature: String {
        switch self {
        case .number(let code, _), .text(let code, _): String(UnicodeScalar(code))
        case .double: "d"
        case .descriptor: "h"
        case .array(let element, _): "a" + element
        case .structure(let fields): "(" + fields.signature + ")"
        case .entry(let key, let value): "{" + key.signature + value.signature + "}"
        case .variant: "v"
        }
    }

    package var string: String? {
        if case .text(UInt8(ascii: "s"), let value) = self { value } else { nil }
    }

    package var uint32: UInt32? {
        if case .number(UInt8(ascii: "u"), let value) = self { UInt32(truncatingIfNeeded: value) } else { nil }
    }

    package var uint64: UInt64? {
        if case .number(UInt8(ascii: "t"), let value) = self { value } else { nil }
    }

    package var int64: Int64? {
        if case .number(UInt8(ascii: "x"), let value) = self { Int64(bitPattern: value) } else { nil }
    }

    package var double: Double? {
        if case .double(let value) = self { value } else { nil }
    }

    package var boolean: Bool? {
        if case .number(UInt8(ascii: "b"), let value) = self { value != 0 } else { nil }
    }

    package var strings: [String]? {
        if case .array("s", let values) = self { values.compactMap(\.string) } else { nil }
    }

    package var elements: [BusValue]? {
        if case .array(_, let values) = self { values } else { nil }
    }

    package var descriptor: Int32? {
        if case .descriptor(let value) = self { value } else { nil }
    }

    /// The entries of an a{sv}, without the variants around the values.
    package var dictionary: [String: BusValue]? {
        guard case .array("{sv}", let entries) = self else { return nil }
        var result: [String: BusValue] = [:]
        for case .entry(.text(_, let key), .variant(let value)) in entries { result[key] = value }
        return result
    }
}

extension BusValue {
    /// The same value, with duplicates of the descriptors in it, which are closed on exec.
    package var duplicatingDescriptors: BusValue {
        switch self {
        case .number, .double, .text: self
        case .descriptor(let descriptor): .descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0))
        case .array(let element, let values): .array(element: element, values.map(\.duplicatingDescriptors))
        case .structure(let values): .structure(values.map(\.duplicatingDescriptors))
        case .entry(let key, let value): .entry(key.duplicatingDescriptors, value.duplicatingDescriptors)
        case .variant(let value): .variant(value.duplicatingDescriptors)
        }
    }

    /// The same with -1 for each descriptor.
    package var withoutDescriptors: BusValue {
        switch self {
        case .number, .double, .text: self
        case .descriptor: .descriptor(-1)
        case .array(let element, let values): .array(element: element, values.map(\.withoutDescriptors))
        case .structure(let values): .structure(values.map(\.withoutDescriptors))
        case .entry(let key, let value): .entry(key.withoutDescriptors, value.withoutDescriptors)
        case .variant(let value): .variant(value.withoutDescriptors)
        }
    }

    /// Appends the descriptors in the value, in order.
    package func collectDescriptors(into descriptors: inout [Int32]) {
        switch self {
        case .number, .double, .text: break
        case .descriptor(let descriptor): descriptors.append(descriptor)
        case .array(_, let values), .structure(let values):
            for value in values { value.collectDescriptors(into: &descriptors) }
        case .entry(let key, let value):
            key.collectDescriptors(into: &descriptors)
            value.collectDescriptors(into: &descriptors)
        case .variant(let value): value.collectDescriptors(into: &descriptors)
        }
    }
}

extension [BusValue] {
    /// The signature of all of them. `joined()` in generic code would make Swift's runtime look through all conformances of
    /// the program: some 70,000 instructions at a command's start.
    package var signature: String { reduce(into: "") { $0 += $1.signature } }

    /// Closes the descriptors among received values that are not used.
    package func closeDescriptors() {
        var descriptors: [Int32] = []
        for value in self { value.collectDescriptors(into: &descriptors) }
        for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
    }
}
