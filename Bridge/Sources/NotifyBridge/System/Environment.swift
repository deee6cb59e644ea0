// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Environment variables.
enum Environment {
    /// A variable that is set and not empty.
    static subscript(name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// Text of unknown origin, made printable.
package enum Printable {
    /// Control characters would move a terminal's cursor, or forge lines.
    package static func text(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.reduce(into: "") { result, scalar in
            result += isControl(scalar) ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }
    }

    /// Also what separates lines or turns text around.
    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value || 0x2028...0x202E ~= scalar.value
            || 0x2066...0x2069 ~= scalar.value
    }
}
