// SPDX-License-Identifier: Apache-2.0

/// Text with one setting per line as `KEY = VALUE`; empty lines and those that begin with `#` are ignored. All files of
/// settings are written this way.
package struct SettingsText {
    /// A line that is not ignored.
    package struct Line {
        /// The first is 1.
        package let number: Int
        package let key: String
        /// Nil if there is no `=`; then the key is the whole line.
        package let value: String?
    }

    package let lines: [Line]

    package init(_ text: String) {
        var lines: [Line] = []
        // By bytes: "\r\n" would be one character, and so would "=" and an accent behind it.
        for (index, line) in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .enumerated()
        {
            let line = line.trimmed
            if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
            let equals = line.firstIndex(of: UInt8(ascii: "="))
            let key = line[..<(equals ?? line.endIndex)].trimmed
            let value = equals.map { line[line.index(after: $0)...].trimmed }
            lines.append(
                Line(number: index + 1, key: String(Substring(key)), value: value.map { String(Substring($0)) })
            )
        }
        self.lines = lines
    }

    /// Whether a byte separates words: a space, a tab, or what stands before the end of a line in some files.
    fileprivate static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }

    /// The words of a value.
    ///
    /// - Parameter most: the last of so many contains the rest of the value.
    package static func words(of value: String, most: Int = .max) -> [Substring] {
        value.utf8.split(maxSplits: most - 1, whereSeparator: isBlank).map { Substring($0.trimmed) }
    }

    /// Without blanks before and behind it.
    package static func trimmed(_ text: Substring) -> String { String(Substring(text.utf8.trimmed)) }
}

extension Substring.UTF8View {
    /// Without blanks before and behind it.
    fileprivate var trimmed: Substring.UTF8View {
        var text = drop(while: SettingsText.isBlank)
        while let last = text.last, SettingsText.isBlank(last) { text.removeLast() }
        return text
    }
}
