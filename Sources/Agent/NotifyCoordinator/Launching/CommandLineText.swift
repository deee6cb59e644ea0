// SPDX-License-Identifier: Apache-2.0

/// A command line in systemd's quoting, without a shell. See systemd.service(5), "Command lines", and systemd.syntax(7),
/// "Quoting".
package enum CommandLineText {
    private typealias Complaint = LaunchFile.Complaint

    package static func words(of text: String) throws(LaunchFile.Complaint) -> [String] {
        var words: [String] = []
        var word: [UInt8]?
        var quote: UInt8?
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\\"):
                word = (word ?? []) + (try escape(&rest))
            case quote: quote = nil
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                guard quote == nil else {
                    word?.append(byte)
                    break
                }
                quote = byte
                word = word ?? []
            case 0x20, 0x09:
                guard quote == nil else {
                    word?.append(byte)
                    break
                }
                if let word { words.append(try string(word)) }
                word = nil
            default: word = (word ?? []) + [byte]
            }
        }
        guard quote == nil else { throw Complaint("unbalanced quotes") }
        if let word { words.append(try string(word)) }
        return words
    }

    /// A command line that yields these words.
    package static func text(of words: [String]) -> String { words.map(quoted).joined(separator: " ") }

    private static func quoted(_ word: String) -> String {
        let plain = word.utf8.allSatisfy { byte in
            byte > 0x20 && byte != 0x7f && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "'")
                && byte != UInt8(ascii: "\\")
        }
        if plain, !word.isEmpty { return word }
        // In single quotes a script looks as it was written, if it has none itself.
        let mark: Character = word.utf8.contains(UInt8(ascii: "'")) ? "\"" : "'"
        var text = String(mark)
        for scalar in word.unicodeScalars {
            switch scalar {
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\\": text += "\\\\"
            case "\"" where mark == "\"": text += "\\\""
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + String(mark)
    }

    private static func string(_ bytes: [UInt8]) throws(LaunchFile.Complaint) -> String {
        guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
            throw Complaint("an escape sequence produces invalid text")
        }
        return text
    }

    private static let letters: [UInt8: UInt8] = [
        UInt8(ascii: "a"): 0x07, UInt8(ascii: "b"): 0x08, UInt8(ascii: "f"): 0x0c, UInt8(ascii: "n"): 0x0a,
        UInt8(ascii: "r"): 0x0d, UInt8(ascii: "t"): 0x09, UInt8(ascii: "v"): 0x0b, UInt8(ascii: "s"): 0x20,
        UInt8(ascii: "\\"): 0x5c, UInt8(ascii: "\""): 0x22, UInt8(ascii: "'"): 0x27,
    ]

    private static func escape(_ rest: inout ArraySlice<UInt8>) throws(LaunchFile.Complaint) -> [UInt8] {
        guard let kind = rest.popFirst() else { throw Complaint("trailing '\\'") }
        if let letter = letters[kind] { return [letter] }
        switch kind {
        case UInt8(ascii: "x"):
            if let value = number(&rest, digits: 2, radix: 16) { return [UInt8(truncatingIfNeeded: value)] }
        case UInt8(ascii: "u"), UInt8(ascii: "U"):
            if let value = number(&rest, digits: kind == UInt8(ascii: "u") ? 4 : 8, radix: 16),
                let scalar = Unicode.Scalar(value)
            {
                return Array(String(Character(scalar)).utf8)
            }
        default:
            rest = [kind] + rest
            if let value = number(&rest, digits: 3, radix: 8), value < 256 { return [UInt8(value)] }
        }
        throw Complaint("unknown escape sequence '\\\(String(decoding: [kind], as: UTF8.self))'")
    }

    private static func number(_ rest: inout ArraySlice<UInt8>, digits: Int, radix: Int) -> UInt32? {
        let text = rest.prefix(digits)
        guard text.count == digits, let first = text.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-")
        else {
            return nil
        }
        rest = rest.dropFirst(digits)
        return UInt32(String(decoding: text, as: UTF8.self), radix: radix)
    }
}
