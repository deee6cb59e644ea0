// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The observers of a bus as a table for people.
struct ObserverTable {
    private typealias Entry = AgentInterface.ListEntry

    private struct Column {
        let column: TextTable.Column
        let cell: (AgentInterface.ListEntry) -> TextTable.Cell

        init(
            _ title: String,
            isNumber: Bool = false,
            minimum: Int? = nil,
            dropOrder: Int? = nil,
            _ cell: @escaping (AgentInterface.ListEntry) -> TextTable.Cell
        ) {
            column = TextTable.Column(title, isNumber: isNumber, minimum: minimum, dropOrder: dropOrder)
            self.cell = cell
        }
    }

    private let observers: [AgentInterface.ListEntry]
    private let isDetailed: Bool

    /// - Parameter isDetailed: whether to show also connections, users and names.
    init(_ observers: [AgentInterface.ListEntry], isDetailed: Bool) {
        self.observers = observers
        self.isDetailed = isDetailed
    }

    /// The meaning of the mark on a state; nil if none has it.
    var legend: String? {
        guard observers.contains(where: \.isParked) else { return nil }
        return "* the process is stopped; unless in the background, it hears each posted name when it continues"
    }

    /// - Parameter now: the time in seconds since 1970.
    func text(withHeader hasHeader: Bool, now: Int64) -> String {
        let columns = columns(now: now)
        let table = TextTable(columns.map(\.column), observers.map { observer in columns.map { $0.cell(observer) } })
        let width = Terminal.size?.columns
        var lines = table.lines(withHeader: hasHeader, width: width, isColored: Terminal.hasColors)
        if isDetailed {
            let first = lines.count - observers.count
            for (index, observer) in observers.enumerated().reversed() {
                lines.insert(contentsOf: ObserverTable.names(of: observer), at: first + index + 1)
            }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private func columns(now: Int64) -> [Column] {
        var columns = [Column("PID", isNumber: true) { Self.cell(String($0.process)) }]
        if isDetailed {
            columns.append(Column("CONNECTION", dropOrder: 6) { Self.cell($0.name) })
            columns.append(Column("UID", isNumber: true, dropOrder: 3) { Self.cell(String($0.user)) })
        }
        columns += [
            Column("PROGRAM", minimum: 8, dropOrder: 9) { Self.cell($0.program) },
            Column("APPLICATION", minimum: 11, dropOrder: 8) { Self.cell($0.application) },
            Column("STATE") {
                TextTable.Cell(Self.text($0.state) + ($0.isParked ? "*" : ""), $0.style)
            },
            // Another agent need not report who decided.
            Column("BY", minimum: 7, dropOrder: 7) { Self.cell($0.decider ?? "") },
        ]
        if isDetailed, observers.contains(where: { $0.hasFocus != nil }) {
            columns.append(Column("FOCUS", dropOrder: 4) { Self.cell($0.hasFocus == true ? "yes" : "") })
        }
        return columns + [
            Column("NAMES", isNumber: true, dropOrder: 5) { Self.cell(String($0.names)) },
            Column("PENDING", isNumber: true, dropOrder: 2) { Self.cell(String($0.pending)) },
            Column("DROPPED", isNumber: true, dropOrder: 0) { Self.cell(String($0.dropped)) },
            Column("SINCE", dropOrder: 1) { Self.cell(Self.age(since: $0.since, now: now)) },
        ]
    }

    private static func cell(_ text: String) -> TextTable.Cell { TextTable.Cell(self.text(text)) }

    private static func text(_ text: String) -> String {
        text.isEmpty ? "-" : Printable.text(text)
    }

    /// What it observes, below its line, as far as the agent reports it.
    private static func names(of observer: AgentInterface.ListEntry) -> [String] {
        let names = observer.observedNames ?? []
        let prefixes = (observer.observedPrefixes ?? []).map { $0.isEmpty ? "every name" : Printable.text($0) + "*" }
        var lines = (names.map { Printable.text($0) } + prefixes).map { "    " + $0 }
        let left = Int(observer.names) - names.count - prefixes.count
        if left > 0, !lines.isEmpty { lines.append("    and \(left) more") }
        return lines
    }

    /// An age in the largest unit that leaves a number: `42s`, `3m`, `5h`, `12d`.
    private static func age(since: UInt64, now: Int64) -> String {
        if since == 0 { return "-" }
        // A clock that was set back must not make an age negative.
        let seconds = max(0, now - Int64(clamping: since))
        return switch seconds {
        case ..<60: "\(seconds)s"
        case ..<3_600: "\(seconds / 60)m"
        case ..<86_400: "\(seconds / 3_600)h"
        default: "\(seconds / 86_400)d"
        }
    }
}
