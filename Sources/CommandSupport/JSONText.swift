// SPDX-License-Identifier: Apache-2.0

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
