// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

extension AgentInterface.FocusEntry {
    var json: String {
        var object = JSONObject()
        for (key, value) in fields { object.add(key, value) }
        return object.line
    }
}

/// The agent's report about itself. Everything in it is shown: a newer agent may report more.
struct StatusReport {
    private let fields: [(key: String, value: BusValue)]

    init(_ answer: AgentInterface.Status.Answer) {
        fields = answer.fields
    }

    var json: String {
        var object = JSONObject()
        for (key, value) in fields { object.add(key, value) }
        return object.line
    }

    /// One line per field, with the values aligned; the sources of facts in a table.
    var text: String {
        // Fields of several lines come last, and some have a command of their own.
        let shown = fields.filter { $0.key != "launches" && $0.key != "focus" }
        let fields = shown.filter { table($0.key, $0.value) == nil } + shown.filter { table($0.key, $0.value) != nil }
        let names = fields.map { BusValue.string($0.key).readable + ":" }
        let width = names.map(\.count).max() ?? 0
        return zip(names, fields).map { name, field in
            let margin = String(repeating: " ", count: width + 1)
            let value = table(field.key, field.value).map { $0.joined(separator: "\n" + margin) }
            return name + margin.dropFirst(name.count) + (value ?? readable(field.key, field.value)) + "\n"
        }.joined()
    }

    private func table(_ key: String, _ value: BusValue) -> [String]? {
        sources(key, value) ?? events(key, value) ?? faults(key, value)
    }

    /// One line per mistake in the agent's settings; nil if there is none.
    private func faults(_ key: String, _ value: BusValue) -> [String]? {
        guard key == "faults", case .array("s", let all) = value, !all.isEmpty else { return nil }
        return all.map(\.readable)
    }

    /// One line per name that is wanted or was posted; nil if the value is not a list of them.
    private func events(_ key: String, _ value: BusValue) -> [String]? {
        guard key == "events", let all = try? AgentInterface.EventEntry.entries(in: value) else { return nil }
        let shown = all.filter { $0.wanted > 0 || $0.posts > 0 }
        guard !shown.isEmpty else { return ["none of the \(all.count) events is in use; see notifybus-events(7)"] }
        let names = shown.map { BusValue.string($0.name).readable }
        let width = names.map(\.count).max() ?? 0
        return zip(names, shown).map { name, event in
            let time = event.last > 0 ? ", last " + readable("since", .uint64(event.last)) : ""
            return name + String(repeating: " ", count: width - name.count) + (event.isLive ? "  live  " : "  off   ")
                + "wanted by \(event.wanted), "
                + "\(event.posts) post\(event.posts == 1 ? "" : "s")" + time
                + (event.reason.isEmpty ? "" : ": " + BusValue.string(event.reason).readable)
        }
    }

    /// One line per source of facts; nil if the value is not a list of them.
    private func sources(_ key: String, _ value: BusValue) -> [String]? {
        guard key == "sources", let all = try? AgentInterface.SourceEntry.entries(in: value), !all.isEmpty else {
            return nil
        }
        let names = all.map { BusValue.string($0.name).readable }
        let width = names.map(\.count).max() ?? 0
        return zip(names, all).map { name, source in
            let remark = source.isLive ? source.fact : source.reason
            return name + String(repeating: " ", count: width - name.count) + (source.isLive ? "  live  " : "  off   ")
                + "\(source.facts) fact\(source.facts == 1 ? "" : "s")"
                + (remark.isEmpty ? "" : ": " + BusValue.string(remark).readable)
        }
    }

    private func readable(_ key: String, _ value: BusValue) -> String {
        if key == "longest-step", let time = value.uint64 { return "\(time / 1_000).\(time % 1_000 / 100) ms" }
        // Beyond this limit it is not a time, would overflow in nanoseconds, and stays a number.
        guard key == "since", let seconds = value.uint64, seconds < 9_000_000_000 else { return value.readable }
        return LocalTime.text(nanosecondsSince1970: Int64(seconds) * 1_000_000_000)
    }
}
