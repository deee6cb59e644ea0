// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// Something that the agent has learned by one of its sources.
struct FactChange: Sendable {
    /// In nanoseconds since 1970.
    let time: Int64
    let source: String
    let fact: String

    /// Returns nil if the arguments are not those of a FactChanged.
    init?(_ arguments: [BusValue], at time: Int64) {
        guard arguments.count == 2, let source = arguments[0].string, let fact = arguments[1].string else { return nil }
        self.time = time
        self.source = source
        self.fact = fact
    }

    var text: String {
        LocalTime.text(nanosecondsSince1970: time) + " " + BusValue.string(source).readable + ": "
            + BusValue.string(fact).readable + "\n"
    }

    var json: String {
        var object = JSONObject()
        object.add("time", .string(LocalTime.text(nanosecondsSince1970: time)))
        object.add("source", .string(source))
        object.add("fact", .string(fact))
        return object.line
    }
}
