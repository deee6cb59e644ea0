// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The observers of a bus as a table for people.
struct ObserverTable {
    private struct Column {
        let title: String
        var isNumber = false
        let cell: (AgentInterface.ListEntry) -> String
    }

    private let observers: [AgentInterface.ListEntry]
    private let isDetailed: Bool

    /// - Parameter isDetailed: whether connections and users are shown too.
    init(_ observers: [AgentInterface.ListEntry], isDetailed: Bool) {
        self.observers = observers
        self.isDetailed = isDetailed
    }

    /// What the mark at a state means; nil if none has it.
    var legend: String? {
        guard observers.contains(where: \.isParked) else { return nil }
        return "* its process is stopped: the agent keeps one post of each name until it runs again"
    }

    /// - Parameter now: the time in seconds since 1970.
    func text(withHeader hasHeader: Bool, now: Int64) -> String {
        let columns = columns(now: now)
        var rows = observers.map { observer in columns.map { $0.cell(observer) } }
        if hasHeader { rows.insert(columns.map(\.title), at: 0) }
        let widths = columns.indices.map { index in rows.map { $0[index].count }.max() ?? 0 }
        var text = ""
        for row in rows {
            var line = ""
            for (index, cell) in row.enumerated() {
                let padding = String(repeating: " ", count: widths[index] - cell.count)
                if index > 0 { line += "  " }
                if columns[index].isNumber {
                    line += padding + cell
                } else {
                    // Nothing after the last cell.
                    line += index == row.count - 1 ? cell : cell + padding
                }
            }
            text += line + "\n"
        }
        return text
    }

    private func columns(now: Int64) -> [Column] {
        var columns = [Column(title: "PID", isNumber: true) { String($0.process) }]
        if isDetailed {
            columns.append(Column(title: "CONNECTION") { ObserverTable.text($0.name) })
            columns.append(Column(title: "UID", isNumber: true) { String($0.user) })
        }
        columns += [
            Column(title: "PROGRAM") { ObserverTable.text($0.program) },
            Column(title: "APPLICATION") { ObserverTable.text($0.application) },
            Column(title: "STATE") { ObserverTable.text($0.state) + ($0.isParked ? "*" : "") },
        ]
        // Another agent need not say who has decided.
        if observers.contains(where: { $0.decider != nil }) {
            columns.append(Column(title: "BY") { ObserverTable.text($0.decider ?? "") })
        }
        if isDetailed, observers.contains(where: { $0.hasFocus != nil }) {
            columns.append(Column(title: "FOCUS") { $0.hasFocus == true ? "yes" : "-" })
        }
        return columns + [
            Column(title: "NAMES", isNumber: true) { String($0.names) },
            Column(title: "PENDING", isNumber: true) { String($0.pending) },
            Column(title: "DROPPED", isNumber: true) { String($0.dropped) },
            Column(title: "SINCE") { ObserverTable.age(since: $0.since, now: now) },
        ]
    }

    private static func text(_ text: String) -> String {
        text.isEmpty ? "-" : Printable.text(text)
    }

    /// How long ago that was, in the largest unit that leaves a number: `42s`, `3m`, `5h`, `12d`.
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
