// SPDX-License-Identifier: Apache-2.0

/// Text that stays on one line and can't control a terminal, whatever it contains.
package enum Printable {
    /// `bytes` with everything escaped that is not printable UTF-8, truncated after about `limit` characters.
    package static func text(_ bytes: UnsafeRawBufferPointer, limit: Int = .max) -> String {
        var result = ""
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        var offset = 0
        var written = 0
        while written < limit {
            switch decoder.decode(&iterator) {
            case .scalarValue(let scalar):
                append(scalar, to: &result)
                offset += UTF8.width(scalar)
            case .error:
                // The decoder has skipped at least one byte, but does not say how many: start again after the first
                // one.
                append(byte: bytes[offset], to: &result)
                offset += 1
                decoder = UTF8()
                iterator = UnsafeRawBufferPointer(rebasing: bytes[offset...]).makeIterator()
            case .emptyInput:
                return result
            }
            written += 1
        }
        return offset < bytes.count ? result + "..." : result
    }

    /// `string` with its control characters escaped.
    package static func text(_ string: String) -> String {
        guard string.unicodeScalars.contains(where: mustEscape) else { return string }
        var result = ""
        for scalar in string.unicodeScalars {
            append(scalar, to: &result)
        }
        return result
    }

    /// Quoted, on one line, and no longer than a message should be.
    package static func quoted(_ string: some StringProtocol) -> String {
        var string = String(string)
        return "'" + string.withUTF8 { text(UnsafeRawBufferPointer($0), limit: 60) } + "'"
    }

    /// Control characters, and characters that break a line or change the direction of text.
    ///
    /// None of them is beyond U+FFFF.
    package static func mustEscape(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7f..<0xa0, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    private static func append(_ scalar: Unicode.Scalar, to result: inout String) {
        if !mustEscape(scalar) {
            result.unicodeScalars.append(scalar)
        } else if scalar.value < 0x80 {
            append(byte: UInt8(scalar.value), to: &result)
        } else {
            result += "\\u{" + String(scalar.value, radix: 16) + "}"
        }
    }

    private static func append(byte: UInt8, to result: inout String) {
        switch byte {
        case UInt8(ascii: "\n"): result += "\\n"
        case UInt8(ascii: "\r"): result += "\\r"
        case UInt8(ascii: "\t"): result += "\\t"
        default:
            let digits = String(byte, radix: 16)
            result += (digits.utf8.count == 1 ? "\\x0" : "\\x") + digits
        }
    }
}
