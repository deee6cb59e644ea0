// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The display of a model, as lines of text.
struct Page {
    /// The tables to show.
    enum Part: CaseIterable {
        case both, names, observers

        var next: Part {
            switch self {
            case .both: .names
            case .names: .observers
            case .observers: .both
            }
        }
    }

    private let model: Model
    private let now: Int64
    private let part: Part

    init(_ model: Model, now: Int64, part: Part = .both) {
        self.model = model
        self.now = now
        self.part = part
    }

    /// - Parameter height: the maximum number of lines; nil for no limit.
    func lines(width: Int?, height: Int? = nil, isColored: Bool) -> [String] {
        var names = part == .observers ? [] : nameTable.lines(withHeader: true, width: width, isColored: isColored)
        if part != .observers, model.others > 0 {
            names.append(Page.cut("... and \(model.others) post\(model.others == 1 ? "" : "s") of other names", width))
        }
        var observers =
            part == .names
            ? []
            : observerTable?.lines(withHeader: true, width: width, isColored: isColored) ?? [Page.cut(noAgent, width)]
        if let height {
            let room = height - (part == .both ? 1 : 0)
            let share = part == .both ? max(room / 2, room - observers.count) : room
            names = Page.clipped(names, to: share, width)
            observers = Page.clipped(observers, to: max(0, room - names.count), width)
        }
        return names + (part == .both ? [""] : []) + observers
    }

    /// A summary of everything.
    var summary: String {
        let count = model.all.count
        var text =
            "\(count) post\(count == 1 ? "" : "s") of \(model.names.count) name\(model.names.count == 1 ? "" : "s")"
        if model.others > 0 { text += " and \(model.others) of other names" }
        text += ", \(Page.text(rate: model.all.rate(at: now, since: model.start)))/s"
        if let observers = model.observers {
            text += "; \(observers.count) observer\(observers.count == 1 ? "" : "s")"
            let away = observers.filter { $0.state != "foreground" }.count
            if away > 0 { text += ", \(away) not in the foreground" }
        }
        return model.isBusAway ? text + "; disconnected" : text
    }

    private var noAgent: String {
        if model.isInSandbox { return "Observers unknown: the lifecycle agent can't be seen from a sandbox." }
        return model.isAgentForeign
            ? "Observers unknown: the lifecycle agent on this bus belongs to another user."
            : "Observers unknown: no lifecycle agent is running on this bus."
    }

    private var nameTable: TextTable {
        let columns = [
            TextTable.Column("RATE", isNumber: true), TextTable.Column("COUNT", isNumber: true),
            TextTable.Column("LAST", dropOrder: 0), TextTable.Column("POSTER", minimum: 8, dropOrder: 1),
            TextTable.Column("NAME", minimum: 12),
        ]
        return TextTable(
            columns,
            model.sortedNames(at: now).map { name, activity in
                let rate = activity.rate(at: now, since: model.start)
                return [
                    TextTable.Cell(Page.text(rate: rate), rate > 0 ? .good : .weak),
                    TextTable.Cell(String(activity.count)),
                    // The time of day only.
                    TextTable.Cell(String(LocalTime.text(nanosecondsSince1970: activity.last).dropFirst(11).prefix(8))),
                    Page.cell(poster(of: activity)),
                    TextTable.Cell(Printable.text(name.string)),
                ]
            }
        )
    }

    /// The program and its process, as far as known.
    private func poster(of activity: NameActivity) -> String {
        guard let poster = model.poster(of: activity) else { return activity.sender ?? "" }
        return poster.program.map { "\($0) \(poster.process)" } ?? "pid \(poster.process)"
    }

    private var observerTable: TextTable? {
        guard let observers = model.observers else { return nil }
        let columns = [
            TextTable.Column("PID", isNumber: true), TextTable.Column("PROGRAM", minimum: 8, dropOrder: 5),
            TextTable.Column("APPLICATION", minimum: 11, dropOrder: 4), TextTable.Column("STATE"),
            TextTable.Column("BY", minimum: 7, dropOrder: 2), TextTable.Column("PENDING", isNumber: true, dropOrder: 1),
            TextTable.Column("OBSERVES", minimum: 8, dropOrder: 3),
        ]
        return TextTable(
            columns,
            AgentInterface.ListEntry.sorted(observers).map { observer in
                [
                    TextTable.Cell(String(observer.process)), Page.cell(observer.program),
                    Page.cell(observer.application),
                    TextTable.Cell(Printable.text(observer.state) + (observer.isParked ? "*" : ""), observer.style),
                    Page.cell(observer.decider ?? ""), TextTable.Cell(String(observer.pending)),
                    Page.cell(Page.subjects(of: observer)),
                ]
            }
        )
    }

    /// The name if there is only one, otherwise how many.
    private static func subjects(of observer: AgentInterface.ListEntry) -> String {
        let all = (observer.observedNames ?? []) + (observer.observedPrefixes ?? []).map { $0 + "*" }
        return observer.names == 1 && all.count == 1 ? all[0] : "\(observer.names) names"
    }

    private static func cell(_ text: String) -> TextTable.Cell {
        TextTable.Cell(text.isEmpty ? "-" : Printable.text(text))
    }

    private static func text(rate: Double) -> String {
        if rate >= 10 || rate == 0 { return String(Int(rate.rounded())) }
        let tenths = Int((rate * 10).rounded(.up))
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// The first lines, and the number of the others.
    private static func clipped(_ lines: [String], to count: Int, _ width: Int?) -> [String] {
        guard lines.count > count else { return lines }
        guard count > 1 else { return Array(lines.prefix(max(0, count))) }
        return lines.prefix(count - 1) + [cut("... and \(lines.count - count + 1) more", width)]
    }

    /// The beginning of a line that is too long.
    private static func cut(_ line: String, _ width: Int?) -> String { width.map { String(line.prefix($0)) } ?? line }
}
