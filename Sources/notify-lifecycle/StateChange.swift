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

    /// - Parameter isDetailed: whether the connection is shown too.
    func text(isDetailed: Bool) -> String {
        var words = [timeText, String(change.process)]
        if isDetailed { words.append(BusValue.string(change.connection).readable) }
        words += [BusValue.string(change.application).readable, BusValue.string(change.from).readable, "→"]
        return words.joined(separator: " ") + " " + BusValue.string(change.to).readable + "\n"
    }

    var json: String {
        var object = JSONObject()
        object.add("time", .string(timeText))
        object.add("name", .string(change.connection))
        object.add("pid", .uint32(change.process))
        object.add("application", .string(change.application))
        object.add("from", .string(change.from))
        object.add("to", .string(change.to))
        return object.line
    }
}
