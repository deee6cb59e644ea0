// SPDX-License-Identifier: Apache-2.0

/// A D-Bus value, encoded according to "Marshaling (Wire Format)" in the D-Bus specification: what a real agent sends,
/// and what no agent should.
indirect enum Wire: Sendable {
    case bool(Bool)
    case uint32(UInt32)
    case int32(Int32)
    case uint64(UInt64)
    case string(String)
    case array(element: String, [Wire])
    case entry(String, Wire)
    case variant(Wire)

    /// The type `a{sv}`.
    static func dictionary(_ fields: [(String, Wire)]) -> Wire {
        .array(element: "{sv}", fields.map { .entry($0, .variant($1)) })
    }

    var signature: String {
        switch self {
        case .bool: "b"
        case .uint32: "u"
        case .int32: "i"
        case .uint64: "t"
        case .string: "s"
        case .array(let element, _): "a" + element
        case .entry(_, let value): "{s" + value.signature + "}"
        case .variant: "v"
        }
    }

    /// The body of a message with these arguments.
    static func body(_ values: [Wire]) -> [UInt8] {
        var bytes: [UInt8] = []
        for value in values { value.append(to: &bytes) }
        return bytes
    }

    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .bool(let value): Wire.append(value ? 1 : 0, 4, &bytes)
        case .uint32(let value): Wire.append(UInt64(value), 4, &bytes)
        case .int32(let value): Wire.append(UInt64(UInt32(bitPattern: value)), 4, &bytes)
        case .uint64(let value): Wire.append(value, 8, &bytes)
        case .string(let text):
            Wire.append(UInt64(text.utf8.count), 4, &bytes)
            bytes += text.utf8
            bytes.append(0)
        case .array(let element, let values):
            Wire.append(0, 4, &bytes)
            let length = bytes.count - 4
            Wire.pad(&bytes, to: element.hasPrefix("{") || element == "t" ? 8 : element == "v" ? 1 : 4)
            let start = bytes.count
            for value in values { value.append(to: &bytes) }
            let count = bytes.count - start
            for index in 0..<4 { bytes[length + index] = UInt8(truncatingIfNeeded: count >> (index * 8)) }
        case .entry(let key, let value):
            Wire.pad(&bytes, to: 8)
            Wire.string(key).append(to: &bytes)
            value.append(to: &bytes)
        case .variant(let value):
            bytes.append(UInt8(value.signature.utf8.count))
            bytes += value.signature.utf8
            bytes.append(0)
            value.append(to: &bytes)
        }
    }

    private static func append(_ value: UInt64, _ size: Int, _ bytes: inout [UInt8]) {
        pad(&bytes, to: size)
        bytes += (0..<size).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private static func pad(_ bytes: inout [UInt8], to alignment: Int) {
        bytes += repeatElement(0, count: (alignment - bytes.count % alignment) % alignment)
    }
}
