// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// A change of an observer's state that the agent has announced.
struct StateChange: Sendable {
    /// In nanoseconds since 1970.
    let time: Int64
    let change: AgentInterface.StateChanged

    /// Throws if the arguments are not those of a StateChanged.
    init(_ arguments: [BusValue], at time: Int64) throws(ArgumentError) {
        self.time = time
        change = try AgentInterface.StateChanged(arguments)
    }

    private var timeText: String { LocalTime.text(nanosecondsSince1970: time) }

    /// - Parameters:
    ///   - observer: the agent's current entry for the observer; nil if it is gone, or the agent does not say.
    ///   - isDetailed: whether to show the connection as well.
    func text(_ observer: AgentInterface.ListEntry?, isDetailed: Bool) -> String {
        var words = [timeText, String(change.process)]
        if isDetailed { words.append(BusValue.string(change.connection).readable) }
        words += [BusValue.string(change.application).readable, BusValue.string(change.from).readable, "→"]
        words.append(BusValue.string(change.to).readable)
        if let observer {
            let decider = observer.decider.map { ", by " + BusValue.string($0).readable } ?? ""
            words.append("(" + BusValue.string(observer.program).readable + decider + ")")
        }
        return words.joined(separator: " ") + "\n"
    }

    func json(_ observer: AgentInterface.ListEntry?) -> String {
        var object = JSONObject()
        object.add("time", .string(timeText))
        object.add("name", .string(change.connection))
        object.add("pid", .uint32(change.process))
        object.add("application", .string(change.application))
        object.add("from", .string(change.from))
        object.add("to", .string(change.to))
        if let observer {
            object.add("program", .string(observer.program))
            if let decider = observer.decider { object.add("decider", .string(decider)) }
        }
        return object.line
    }
}

/// Something that the agent has learned from one of its sources.
struct FactChange: Sendable {
    /// In nanoseconds since 1970.
    let time: Int64
    let change: AgentInterface.FactChanged

    /// Throws if the arguments are not those of a FactChanged.
    init(_ arguments: [BusValue], at time: Int64) throws(ArgumentError) {
        self.time = time
        change = try AgentInterface.FactChanged(arguments)
    }

    var text: String {
        LocalTime.text(nanosecondsSince1970: time) + " " + BusValue.string(change.source).readable + ": "
            + BusValue.string(change.fact).readable + "\n"
    }

    var json: String {
        var object = JSONObject()
        object.add("time", .string(LocalTime.text(nanosecondsSince1970: time)))
        object.add("source", .string(change.source))
        object.add("fact", .string(change.fact))
        return object.line
    }
}
