// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

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
