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
            let line = SettingsText.trimmed(line)
            if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
            let equals = line.firstIndex(of: UInt8(ascii: "="))
            let key = SettingsText.trimmed(line[..<(equals ?? line.endIndex)])
            let value = equals.map { SettingsText.trimmed(line[line.index(after: $0)...]) }
            lines.append(
                Line(number: index + 1, key: String(Substring(key)), value: value.map { String(Substring($0)) })
            )
        }
        self.lines = lines
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }
}
