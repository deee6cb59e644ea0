// SPDX-License-Identifier: Apache-2.0

/// Text inside the quotes of a JSON string (RFC 8259, section 7).
package enum JSONText {
    package static func append(_ text: String, to record: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                record += [UInt8(ascii: "\\"), byte]
            case 0x08: record += "\\b".utf8
            case 0x09: record += "\\t".utf8
            case 0x0a: record += "\\n".utf8
            case 0x0c: record += "\\f".utf8
            case 0x0d: record += "\\r".utf8
            case 0..<0x20:
                record += (byte < 0x10 ? "\\u000" : "\\u00").utf8
                record += String(byte, radix: 16).utf8
            default:
                record.append(byte)
            }
        }
    }
}
