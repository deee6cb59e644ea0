// SPDX-License-Identifier: Apache-2.0

/// Which texts are names on a bus: see the D-Bus specification, "Valid Names" and "Valid Object Paths". Some of those
/// that we send come from other programs, and a bus disconnects a program that sends an invalid one.
package enum BusNames {
    private static let longest = 255

    package static func isConnection(_ text: String) -> Bool {
        let isUnique = text.utf8.first == UInt8(ascii: ":")
        return text.utf8.count <= longest
            && isDotted(text.utf8.dropFirst(isUnique ? 1 : 0)) { element in
                (isUnique || !startsWithDigit(element))
                    && element.allSatisfy { isNameByte($0) || $0 == UInt8(ascii: "-") }
            }
    }

    package static func isError(_ text: String) -> Bool {
        text.utf8.count <= longest
            && isDotted(text.utf8[...]) { !startsWithDigit($0) && $0.allSatisfy(isNameByte) }
    }

    package static func isObject(_ text: String) -> Bool {
        guard text != "/" else { return true }
        let elements = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return elements.count > 1 && elements[0].isEmpty
            && elements.dropFirst().allSatisfy { !$0.isEmpty && $0.allSatisfy(isNameByte) }
    }

    private static func isDotted(
        _ text: Substring.UTF8View,
        _ isElement: (Substring.UTF8View) -> Bool
    ) -> Bool {
        let elements = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return elements.count > 1 && elements.allSatisfy { !$0.isEmpty && isElement($0) }
    }

    private static func startsWithDigit(_ text: Substring.UTF8View) -> Bool {
        text.first.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
