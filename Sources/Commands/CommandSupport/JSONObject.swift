// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// A JSON object on one line (RFC 8259), built member by member.
package struct JSONObject {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    package init() {}

    package mutating func add(_ key: String, _ value: BusValue) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        append(string: key)
        bytes.append(UInt8(ascii: ":"))
        append(value)
    }

    /// The object, with the newline that ends the line.
    package var line: String { String(decoding: bytes, as: UTF8.self) + "}\n" }

    private mutating func append(_ value: BusValue) {
        switch value {
        case .number(UInt8(ascii: "b"), let number): bytes += (number == 0 ? "false" : "true").utf8
        case .number: bytes += value.integer.utf8
        // JSON has no infinity.
        case .double(let number): bytes += (number.isFinite ? String(number) : "null").utf8
        case .text(_, let text): append(string: text)
        case .descriptor: bytes += "null".utf8
        case .array(let element, let values) where element.hasPrefix("{"): append(dictionary: values)
        case .array(_, let values), .structure(let values): append(list: values)
        case .entry(let key, let inner): append(list: [key, inner])
        case .variant(let inner): append(inner)
        }
    }

    private mutating func append(string: String) {
        bytes.append(UInt8(ascii: "\""))
        JSONText.append(string, to: &bytes, isForTerminal: StandardStreams.outputIsTerminal)
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func append(list values: [BusValue]) {
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func append(dictionary entries: [BusValue]) {
        bytes.append(UInt8(ascii: "{"))
        var isFirst = true
        for case .entry(let key, let value) in entries {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            // A JSON key is a string; a D-Bus key may be a number.
            if case .text(_, let text) = key { append(string: text) } else { append(string: key.readable) }
            bytes.append(UInt8(ascii: ":"))
            append(value)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}

/// Text inside the quotes of a JSON string (RFC 8259, section 7).
package enum JSONText {
    /// - Parameter isForTerminal: whether to escape also what JSON does not require but could control a terminal.
    package static func append(_ text: String, to record: inout [UInt8], isForTerminal: Bool = false) {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": record += [UInt8(ascii: "\\"), UInt8(ascii: scalar)]
            case "\u{08}": record += "\\b".utf8
            case "\t": record += "\\t".utf8
            case "\n": record += "\\n".utf8
            case "\u{0c}": record += "\\f".utf8
            case "\r": record += "\\r".utf8
            case _ where scalar.value < 0x20 || isForTerminal && Printable.mustEscape(scalar):
                let digits = String(scalar.value, radix: 16)
                record += "\\u".utf8
                record += repeatElement(UInt8(ascii: "0"), count: max(0, 4 - digits.utf8.count))
                record += digits.utf8
            default: record += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
    }
}
