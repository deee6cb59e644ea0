// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// A strict reader for the output of `--json`: an object of strings and numbers (RFC 8259), without Foundation.
struct JSONReader {
    enum Value: Equatable {
        case string(String)
        case number(Double)
    }

    private var rest: ArraySlice<Unicode.Scalar>

    /// The members of the object that makes up a text.
    static func object(_ text: String) throws -> [String: Value] {
        var reader = JSONReader(rest: Array(text.unicodeScalars)[...])
        let members = try reader.object()
        guard reader.rest.isEmpty else { throw TestSupportError("more than an object: \(text)") }
        return members
    }

    private mutating func object() throws -> [String: Value] {
        var members: [String: Value] = [:]
        try take("{")
        repeat {
            let key = try string()
            try take(":")
            let value = try rest.first == "\"" ? .string(string()) : number()
            guard members.updateValue(value, forKey: key) == nil else { throw TestSupportError("twice: \(key)") }
        } while skip(",")
        try take("}")
        return members
    }

    private mutating func string() throws -> String {
        var result = String.UnicodeScalarView()
        try take("\"")
        while true {
            switch rest.popFirst() {
            case nil: throw TestSupportError("a string does not end")
            case "\"": return String(result)
            case "\\": result.append(try escaped())
            case let scalar? where scalar.value < 0x20: throw TestSupportError("a bare control character")
            case let scalar?: result.append(scalar)
            }
        }
    }

    private mutating func escaped() throws -> Unicode.Scalar {
        switch rest.popFirst() {
        case "\"": return "\""
        case "\\": return "\\"
        case "/": return "/"
        case "b": return "\u{8}"
        case "f": return "\u{c}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u":
            let digits = String(String.UnicodeScalarView(rest.prefix(4)))
            rest = rest.dropFirst(4)
            if digits.utf8.count == 4, let scalar = UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init) {
                return scalar
            }
            throw TestSupportError("not four hexadecimal digits of a character: \(digits)")
        case let other: throw TestSupportError("an unknown escape: \(other.map(String.init) ?? "")")
        }
    }

    private mutating func number() throws -> Value {
        let digits = rest.prefix { "0123456789.eE+-".unicodeScalars.contains($0) }
        rest = rest.dropFirst(digits.count)
        guard let number = Double(String(String.UnicodeScalarView(digits))), digits.first != "+", digits.first != "."
        else {
            throw TestSupportError("no number where one must be")
        }
        return .number(number)
    }

    private mutating func skip(_ scalar: Unicode.Scalar) -> Bool {
        if rest.first != scalar { return false }
        rest = rest.dropFirst()
        return true
    }

    private mutating func take(_ scalar: Unicode.Scalar) throws {
        guard skip(scalar) else {
            throw TestSupportError("no '\(scalar)' before '\(String(String.UnicodeScalarView(rest)))'")
        }
    }
}
