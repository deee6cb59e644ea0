// SPDX-License-Identifier: Apache-2.0

/// Writes values in D-Bus's serialized form, the counterpart of `BusValueReader`. See the D-Bus specification,
/// "Marshaling (Wire Format)".
package struct BusValueWriter {
    /// Little-endian, whatever the processor is.
    package static let byteOrder = UInt8(ascii: "l")
    /// The longest array that the specification allows.
    private static let longestArray = 67_108_864

    package private(set) var bytes: [UInt8] = []
    /// How many descriptors were written, each as its position among them.
    private(set) var descriptorCount: UInt32 = 0
    /// Whether everything written can be part of a message.
    package private(set) var isValid = true

    package init() {}

    package mutating func align(to alignment: Int) {
        while bytes.count & (alignment - 1) != 0 { bytes.append(0) }
    }

    package mutating func byte(_ value: UInt8) { bytes.append(value) }

    package mutating func integer<Integer: FixedWidthInteger>(_ value: Integer) {
        align(to: MemoryLayout<Integer>.size)
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func text(_ value: String) {
        integer(UInt32(truncatingIfNeeded: value.utf8.count))
        terminated(value)
    }

    package mutating func signature(_ value: String) {
        if value.utf8.count > 255 { isValid = false }
        byte(UInt8(truncatingIfNeeded: value.utf8.count))
        terminated(value)
    }

    private mutating func terminated(_ value: String) {
        if value.utf8.contains(0) { isValid = false }
        bytes.append(contentsOf: value.utf8)
        bytes.append(0)
    }

    /// Writes an array, whose elements `body` writes.
    package mutating func array(alignment: Int, _ body: (inout BusValueWriter) -> Void) {
        integer(UInt32(0))
        let place = bytes.count - 4
        align(to: alignment)
        let start = bytes.count
        body(&self)
        let count = bytes.count - start
        if count > BusValueWriter.longestArray { isValid = false }
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: count).littleEndian) { length in
            bytes.replaceSubrange(place..<place + 4, with: length)
        }
    }

    /// Writes a header field: a structure of its number and a variant.
    package mutating func field(_ code: UInt8, type: String, _ value: (inout BusValueWriter) -> Void) {
        align(to: 8)
        byte(code)
        signature(type)
        value(&self)
    }

    package mutating func write(_ value: BusValue) {
        switch value {
        case .number(let code, let number):
            switch code {
            case UInt8(ascii: "y"): byte(UInt8(truncatingIfNeeded: number))
            case UInt8(ascii: "n"), UInt8(ascii: "q"): integer(UInt16(truncatingIfNeeded: number))
            case UInt8(ascii: "b"), UInt8(ascii: "i"), UInt8(ascii: "u"): integer(UInt32(truncatingIfNeeded: number))
            default: integer(number)
            }
        case .double(let number): integer(number.bitPattern)
        case .text(UInt8(ascii: "g"), let text): signature(text)
        case .text(let code, let text):
            if code == UInt8(ascii: "o"), !BusNames.isObject(text) { isValid = false }
            self.text(text)
        case .descriptor:
            integer(descriptorCount)
            descriptorCount += 1
        case .array(let element, let values):
            let code = element.utf8.first ?? UInt8(ascii: "y")
            array(alignment: BusValueReader.alignment(of: code)) { for value in values { $0.write(value) } }
        case .structure(let values):
            align(to: 8)
            for value in values { write(value) }
        case .entry(let key, let value):
            align(to: 8)
            write(key)
            write(value)
        case .variant(let value):
            signature(value.signature)
            write(value)
        }
    }
}
