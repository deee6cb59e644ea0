// SPDX-License-Identifier: Apache-2.0

/// A table for people: columns of text, which are shortened or left out if the terminal is too narrow.
package struct TextTable {
    package struct Column {
        package let title: String
        package let isNumber: Bool
        /// The minimum width; nil if it must not be shortened.
        package let minimum: Int?
        /// Of the columns that may be left out, the one with the lowest number goes first; nil if it must stay.
        package let dropOrder: Int?

        package init(_ title: String, isNumber: Bool = false, minimum: Int? = nil, dropOrder: Int? = nil) {
            self.title = title
            self.isNumber = isNumber
            self.minimum = minimum
            self.dropOrder = dropOrder
        }
    }

    package struct Cell {
        package let text: String
        package let style: TextStyle?

        package init(_ text: String, _ style: TextStyle? = nil) {
            self.text = text
            self.style = style
        }
    }

    private static let gap = 2

    private let columns: [Column]
    private let rows: [[Cell]]

    /// - Parameter rows: each with one cell per column.
    package init(_ columns: [Column], _ rows: [[Cell]]) {
        self.columns = columns
        self.rows = rows
    }

    /// The lines of the table, without newlines.
    ///
    /// - Parameters:
    ///   - width: the maximum width; nil for unlimited.
    ///   - isColored: whether to show the cells' styles.
    package func lines(withHeader hasHeader: Bool, width: Int?, isColored: Bool) -> [String] {
        let header = columns.map { Cell($0.title, .strong) }
        let all = (hasHeader ? [header] : []) + rows
        let (shown, widths) = layout(all, in: width)
        return all.map { row in
            var line = ""
            for (place, index) in shown.enumerated() {
                let cell = row[index]
                let text = TextTable.shortened(cell.text, to: widths[place])
                let padding = String(repeating: " ", count: widths[place] - text.count)
                let styled = isColored ? cell.style?.applied(to: text) ?? text : text
                if place > 0 { line += String(repeating: " ", count: TextTable.gap) }
                if columns[index].isNumber {
                    line += padding + styled
                } else {
                    // Nothing after the last cell.
                    line += place == shown.count - 1 ? styled : styled + padding
                }
            }
            return line
        }
    }

    /// The columns to show, and their widths.
    private func layout(_ rows: [[Cell]], in width: Int?) -> (shown: [Int], widths: [Int]) {
        var shown = Array(columns.indices)
        while true {
            var widths = shown.map { index in rows.map { $0[index].text.count }.max() ?? 0 }
            guard let width else { return (shown, widths) }
            var excess = widths.reduce(0, +) + TextTable.gap * max(0, shown.count - 1) - width
            let flexible = shown.indices.filter { columns[shown[$0]].minimum != nil }
            while excess > 0,
                let widest = flexible.filter({ widths[$0] > columns[shown[$0]].minimum ?? 0 })
                    .max(by: { widths[$0] < widths[$1] })
            {
                widths[widest] -= 1
                excess -= 1
            }
            let droppable = shown.filter { columns[$0].dropOrder != nil }
            if excess <= 0 { return (shown, widths) }
            guard let next = droppable.min(by: { columns[$0].dropOrder ?? 0 < columns[$1].dropOrder ?? 0 }) else {
                // There is little left to read, but on one line each. A number without its beginning would be another.
                while excess > 0,
                    let widest = shown.indices.filter({ !columns[shown[$0]].isNumber && widths[$0] > 3 })
                        .max(by: { widths[$0] < widths[$1] })
                {
                    widths[widest] -= 1
                    excess -= 1
                }
                return (shown, widths)
            }
            shown.removeAll { $0 == next }
        }
    }

    /// The end of a text that is too long: in a reverse-DNS name it says most.
    package static func shortened(_ text: String, to width: Int) -> String {
        guard text.count > width else { return text }
        return width <= 3 ? String(text.suffix(width)) : "..." + text.suffix(width - 3)
    }
}

/// How to highlight a text on a terminal.
package enum TextStyle: Sendable {
    case strong, good, weak, notable

    package func applied(to text: String) -> String {
        let code =
            switch self {
            case .strong: "1"
            case .good: "32"
            case .weak: "2"
            case .notable: "33"
            }
        return "\u{1b}[\(code)m\(text)\u{1b}[0m"
    }
}
