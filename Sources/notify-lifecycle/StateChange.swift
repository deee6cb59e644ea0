// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// A change of an observer's state that the agent has announced.
struct StateChange: Sendable {
    /// In nanoseconds since 1970.
    let time: Int64
    let name: String
    let process: UInt32
    let application: String
    let from: String
    let to: String

    /// Returns nil if the arguments are not those of a StateChanged.
    init?(_ arguments: [BusValue], at time: Int64) {
        guard arguments.count == 5, let name = arguments[0].string, let process = arguments[1].uint32,
            let application = arguments[2].string, let from = arguments[3].string, let to = arguments[4].string
        else { return nil }
        self.time = time
        self.name = name
        self.process = process
        self.application = application
        self.from = from
        self.to = to
    }

    private var timeText: String { LocalTime.text(nanosecondsSince1970: time) }

    /// - Parameter isDetailed: whether the connection is shown too.
    func text(isDetailed: Bool) -> String {
        var words = [timeText, String(process)]
        if isDetailed { words.append(BusValue.string(name).readable) }
        words += [BusValue.string(application).readable, BusValue.string(from).readable, "→"]
        return words.joined(separator: " ") + " " + BusValue.string(to).readable + "\n"
    }

    var json: String {
        var object = JSONObject()
        object.add("time", .string(timeText))
        object.add("name", .string(name))
        object.add("pid", .uint32(process))
        object.add("application", .string(application))
        object.add("from", .string(from))
        object.add("to", .string(to))
        return object.line
    }
}
