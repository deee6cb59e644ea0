// SPDX-License-Identifier: Apache-2.0

/// A JSON text, parsed strictly (RFC 8259): nil if it is invalid or nested too deeply. Only what is not UTF-8 in a string is
/// replaced: sway passes on the titles of windows as they are.
package enum JSONValue: Equatable, Sendable {
    case null
    case boolean(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    /// Of duplicate keys the last one counts.
    case object([String: JSONValue])

    /// More than any window tree has.
    private static let maximumDepth = 128

    package init?(_ bytes: [UInt8]) {
        guard let value = bytes.withUnsafeBufferPointer({ JSONReader($0).read(maximumDepth: JSONValue.maximumDepth) })
        else { return nil }
        self = value
    }

    package subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    package var text: String? { if case .string(let value) = self { value } else { nil } }
    package var elements: [JSONValue] { if case .array(let values) = self { values } else { [] } }
    package var isTrue: Bool { self == .boolean(true) }
    package var number: Double? { if case .number(let value) = self { value } else { nil } }
    /// A whole number that fits.
    package var integer: Int32? { if case .number(let value) = self { Int32(exactly: value) } else { nil } }
}

private struct JSONReader {
    private var rest: UnsafeBufferPointer<UInt8>.SubSequence

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        rest = bytes[...]
    }

    consuming func read(maximumDepth: Int) -> JSONValue? {
        guard let value = value(maximumDepth) else { return nil }
        skipBlanks()
        return rest.isEmpty ? value : nil
    }

    private mutating func skipBlanks() {
        rest = rest.drop { $0 == 0x20 || $0 == 0x0a || $0 == 0x0d || $0 == 0x09 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipBlanks()
        guard rest.first == byte else { return false }
        rest = rest.dropFirst()
        return true
    }

    private mutating func take(word: StaticString) -> Bool {
        let bytes = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard rest.starts(with: bytes) else { return false }
        rest = rest.dropFirst(bytes.count)
        return true
    }

    private mutating func value(_ depth: Int) -> JSONValue? {
        guard depth > 0 else { return nil }
        skipBlanks()
        switch rest.first {
        case UInt8(ascii: "{"): return object(depth)
        case UInt8(ascii: "["): return array(depth)
        case UInt8(ascii: "\""): return string().map { .string($0) }
        case UInt8(ascii: "t"): return take(word: "true") ? .boolean(true) : nil
        case UInt8(ascii: "f"): return take(word: "false") ? .boolean(false) : nil
        case UInt8(ascii: "n"): return take(word: "null") ? .null : nil
        default: return number()
        }
    }

    private mutating func object(_ depth: Int) -> JSONValue? {
        rest = rest.dropFirst()
        var members: [String: JSONValue] = [:]
        if take(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipBlanks()
            guard rest.first == UInt8(ascii: "\""), let key = string(), take(UInt8(ascii: ":")),
                let value = value(depth - 1)
            else { return nil }
            members[key] = value
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? .object(members) : nil
    }

    private mutating func array(_ depth: Int) -> JSONValue? {
        rest = rest.dropFirst()
        var values: [JSONValue] = []
        if take(UInt8(ascii: "]")) { return .array(values) }
        repeat {
            guard let value = value(depth - 1) else { return nil }
            values.append(value)
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) ? .array(values) : nil
    }

    private mutating func number() -> JSONValue? {
        var digits: [UInt8] = []
        func isDigit(_ byte: UInt8?) -> Bool { byte.map { (0x30...0x39).contains($0) } ?? false }
        if rest.first == UInt8(ascii: "-") { digits.append(rest.removeFirst()) }
        guard isDigit(rest.first) else { return nil }
        if rest.first == UInt8(ascii: "0") {
            digits.append(rest.removeFirst())
        } else {
            while isDigit(rest.first) { digits.append(rest.removeFirst()) }
        }
        if rest.first == UInt8(ascii: ".") {
            digits.append(rest.removeFirst())
            guard isDigit(rest.first) else { return nil }
            while isDigit(rest.first) { digits.append(rest.removeFirst()) }
        }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            digits.append(rest.removeFirst())
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { digits.append(rest.removeFirst()) }
            guard isDigit(rest.first) else { return nil }
            while isDigit(rest.first) { digits.append(rest.removeFirst()) }
        }
        return Double(String(decoding: digits, as: UTF8.self)).map { .number($0) }
    }

    private mutating func string() -> String? {
        rest = rest.dropFirst()
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: bytes, as: UTF8.self)
            case 0..<0x20: return nil
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                bytes += String(scalar).utf8
            default: bytes.append(byte)
            }
        }
        return nil
    }

    private mutating func escape() -> Unicode.Scalar? {
        switch rest.popFirst() {
        case UInt8(ascii: "\""): "\""
        case UInt8(ascii: "\\"): "\\"
        case UInt8(ascii: "/"): "/"
        case UInt8(ascii: "b"): "\u{8}"
        case UInt8(ascii: "f"): "\u{c}"
        case UInt8(ascii: "n"): "\n"
        case UInt8(ascii: "r"): "\r"
        case UInt8(ascii: "t"): "\t"
        case UInt8(ascii: "u"): unicode()
        default: nil
        }
    }

    /// Four digits, or twice that for characters beyond U+FFFF. An unpaired surrogate is invalid.
    private mutating func unicode() -> Unicode.Scalar? {
        guard let first = fourDigits() else { return nil }
        guard (0xd800..<0xdc00).contains(first) else { return Unicode.Scalar(first) }
        guard take(word: "\\u"), let second = fourDigits(), (0xdc00..<0xe000).contains(second) else { return nil }
        return Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    }

    private mutating func fourDigits() -> UInt32? {
        guard rest.count >= 4 else { return nil }
        let digits = rest.prefix(4)
        guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        rest = rest.dropFirst(4)
        return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
