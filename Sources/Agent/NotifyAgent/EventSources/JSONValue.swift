// SPDX-License-Identifier: Apache-2.0

/// A JSON text, parsed strictly (RFC 8259): nil if it is invalid, nested too deeply or too large. Only what is not UTF-8 in a
/// string is replaced: sway passes on the titles of windows as they are.
package enum JSONValue: Equatable, Sendable {
    case null
    case boolean(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    /// Of duplicate keys the last one counts.
    case object([String: JSONValue])

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

/// Reads a JSON text in the parts in which it comes, so that nothing is left to do at the end of a long one.
///
/// Values that are not wanted are passed over, and not looked at closely.
package struct JSONReader {
    private enum Next { case value, key, colon, comma, nothing }
    private enum Token { case none, key, string, other }

    /// An array or an object that has not ended yet.
    private struct Container {
        let isObject: Bool
        /// Whether its next value is wanted.
        var isWanted: Bool
        var key = ""
        var values: [JSONValue] = []
        var members: [String: JSONValue] = [:]
    }

    /// More than any window tree has.
    private static let maximumDepth = 128
    /// How long a text or a number may be, and about how much memory the value may take, in bytes.
    private static let maximumLength = 262_144
    private static let maximumSize = 16_777_216

    private let keys: Set<String>?
    private var containers: [Container] = []
    private var next = Next.value
    /// Whether the array or object may end instead.
    private var mayEnd = false
    private var token = Token.none
    /// What has come of it, and whether the next byte is escaped.
    private var bytes: [UInt8] = []
    private var isEscaped = false
    private var room = JSONReader.maximumSize
    private var value = JSONValue.null

    /// - Parameter keys: the members of objects that are wanted; nil means all. Of the outermost object all are kept, others than
    ///   these as null.
    package init(keeping keys: Set<String>? = nil) { self.keys = keys }

    /// - Returns: false if it is no JSON text, or too much of one.
    package mutating func take(_ part: ArraySlice<UInt8>) -> Bool {
        for byte in part where !take(byte) { return false }
        return true
    }

    /// The text is complete.
    package mutating func finish() -> JSONValue? {
        endOther() && token == .none && next == .nothing ? value : nil
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        if token == .string || token == .key { return takeOfString(byte) }
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"),
            UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "E"):
            token = .other
            bytes.append(byte)
            return next == .value && bytes.count <= JSONReader.maximumLength
        default: return endOther() && takeMark(byte)
        }
    }

    private mutating func takeMark(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x20, 0x0a, 0x0d, 0x09: return true
        case UInt8(ascii: "\""):
            token = next == .key ? .key : .string
            return next == .key || next == .value
        case UInt8(ascii: "{"): return begin(isObject: true)
        case UInt8(ascii: "["): return begin(isObject: false)
        case UInt8(ascii: "}"): return end(isObject: true)
        case UInt8(ascii: "]"): return end(isObject: false)
        case UInt8(ascii: ":"):
            defer { next = .value }
            return next == .colon
        case UInt8(ascii: ","):
            guard next == .comma, let isObject = containers.last?.isObject else { return false }
            (next, mayEnd) = (isObject ? .key : .value, false)
            return true
        default: return false
        }
    }

    private mutating func takeOfString(_ byte: UInt8) -> Bool {
        if byte < 0x20 { return false }
        if byte == UInt8(ascii: "\""), !isEscaped { return endString() }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        if token == .key || isWanted { bytes.append(byte) }
        return bytes.count <= JSONReader.maximumLength
    }

    private mutating func endString() -> Bool {
        let isKey = token == .key
        token = .none
        defer { bytes.removeAll(keepingCapacity: true) }
        guard isKey || isWanted else { return add(.null) }
        var unescaper = Unescaper(rest: bytes[...])
        guard let text = unescaper.text() else { return false }
        guard isKey, let last = containers.indices.last else {
            room -= bytes.count
            return add(.string(text))
        }
        containers[last].key = text
        let isMember = last == 0 || containers[last - 1].isWanted
        containers[last].isWanted = isMember && keys?.contains(text) != false
        (next, mayEnd) = (.colon, false)
        return true
    }

    /// Ends a number or a word.
    private mutating func endOther() -> Bool {
        guard token == .other else { return true }
        token = .none
        defer { bytes.removeAll(keepingCapacity: true) }
        guard isWanted else { return add(.null) }
        switch String(decoding: bytes, as: UTF8.self) {
        case "true": return add(.boolean(true))
        case "false": return add(.boolean(false))
        case "null": return add(.null)
        case let text: return JSONReader.isNumber(bytes) && Double(text).map { add(.number($0)) } == true
        }
    }

    private static func isNumber(_ text: [UInt8]) -> Bool {
        var rest = text[...]
        func take(_ bytes: String) -> Bool {
            guard let first = rest.first, bytes.utf8.contains(first) else { return false }
            rest.removeFirst()
            return true
        }
        func takeDigits() -> Bool {
            let count = rest.count
            rest = rest.drop { (0x30...0x39).contains($0) }
            return rest.count < count
        }
        _ = take("-")
        guard take("0") || takeDigits() else { return false }
        if take("."), !takeDigits() { return false }
        if take("eE") {
            _ = take("+-")
            if !takeDigits() { return false }
        }
        return rest.isEmpty
    }

    // MARK: - Values

    /// Whether the next value is.
    private var isWanted: Bool { containers.isEmpty || containers[containers.count - 1].isWanted }

    private mutating func begin(isObject: Bool) -> Bool {
        guard next == .value, containers.count < JSONReader.maximumDepth else { return false }
        containers.append(Container(isObject: isObject, isWanted: isWanted))
        (next, mayEnd) = (isObject ? .key : .value, true)
        return true
    }

    private mutating func end(isObject: Bool) -> Bool {
        guard mayEnd, containers.last?.isObject == isObject, let ended = containers.popLast() else { return false }
        return add(isObject ? .object(ended.members) : .array(ended.values))
    }

    private mutating func add(_ value: JSONValue) -> Bool {
        guard let last = containers.indices.last else {
            (self.value, next) = (value, .nothing)
            return true
        }
        (next, mayEnd) = (.comma, true)
        guard isWanted || containers.count == 1 else { return true }
        room -= 64 + containers[last].key.utf8.count
        if containers[last].isObject {
            containers[last].members[containers[last].key] = isWanted ? value : .null
        } else {
            containers[last].values.append(value)
        }
        return room >= 0
    }
}

/// What a string says.
private struct Unescaper {
    var rest: ArraySlice<UInt8>

    mutating func text() -> String? {
        guard rest.contains(UInt8(ascii: "\\")) else { return String(decoding: rest, as: UTF8.self) }
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            guard let scalar = escape() else { return nil }
            bytes += String(scalar).utf8
        }
        return String(decoding: bytes, as: UTF8.self)
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
        guard rest.popFirst() == UInt8(ascii: "\\"), rest.popFirst() == UInt8(ascii: "u"),
            let second = fourDigits(), (0xdc00..<0xe000).contains(second)
        else { return nil }
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
