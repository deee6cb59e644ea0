// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// What is started when names are posted, for people and for programs.
struct LaunchTable {
    private let entries: [AgentInterface.LaunchStatus]

    /// An agent that does not support this has none.
    init(_ answer: AgentInterface.Status.Answer) {
        let value = answer.fields.first { $0.key == "launches" }?.value
        entries = value.flatMap { try? AgentInterface.LaunchStatus.entries(in: $0) } ?? []
    }

    /// One object per line.
    var json: String {
        entries.map { entry in
            var object = JSONObject()
            for case .entry(let key, .variant(let value)) in entry.value.elements ?? [] {
                if let key = key.string { object.add(key, value) }
            }
            return object.line
        }.joined()
    }

    /// - Parameter isDetailed: whether to show also each entry's names, file and unit, and why it is off.
    func text(withHeader hasHeader: Bool, isDetailed: Bool) -> String {
        let columns = [
            TextTable.Column("ENTRY", minimum: 8), TextTable.Column("STARTS", minimum: 12),
            TextTable.Column("STATE"), TextTable.Column("COUNT", isNumber: true, dropOrder: 1),
            TextTable.Column("FAILED", isNumber: true, dropOrder: 0), TextTable.Column("DUE", isNumber: true),
            TextTable.Column("LAST", minimum: 8, dropOrder: 2),
        ]
        let rows = entries.map { entry in
            let style: TextStyle? =
                switch entry.state {
                case "running": .good
                case "idle": .weak
                default: .notable
                }
            return [
                LaunchTable.cell(entry.name), LaunchTable.cell(entry.program),
                TextTable.Cell(Printable.text(entry.state), style), LaunchTable.cell(String(entry.starts)),
                LaunchTable.cell(String(entry.failures)), LaunchTable.cell(String(entry.due)),
                LaunchTable.cell(entry.reason.isEmpty ? entry.result : entry.reason),
            ]
        }
        let table = TextTable(columns, rows)
        var lines = table.lines(withHeader: hasHeader, width: Terminal.size?.columns, isColored: Terminal.hasColors)
        if isDetailed {
            let first = lines.count - entries.count
            for (index, entry) in entries.enumerated().reversed() {
                let names = entry.names + entry.prefixes.map { $0 + "*" }
                let unit = entry.unit.isEmpty ? [] : ["    as " + Printable.text(entry.unit)]
                let more =
                    names.map { "    " + Printable.text($0) } + ["    in " + Printable.text(entry.file)] + unit
                lines.insert(contentsOf: more, at: first + index + 1)
            }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func cell(_ text: String) -> TextTable.Cell {
        TextTable.Cell(text.isEmpty ? "-" : Printable.text(text))
    }
}
