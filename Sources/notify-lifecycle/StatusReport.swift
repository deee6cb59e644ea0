// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// What the agent says about itself. Whatever it says is shown: a newer agent may say more.
struct StatusReport {
    private let fields: [(key: String, value: BusValue)]

    init(_ answer: [BusValue]) throws(LifecycleFailure) {
        guard answer.count == 1, let dictionary = answer[0].dictionary else {
            let signature = answer.map(\.signature).joined()
            throw .nonsense("Status", "it has the type '\(signature)' in place of 'a{sv}'")
        }
        let first = ["version", "pid"]
        let keys = first.filter { dictionary[$0] != nil } + dictionary.keys.filter { !first.contains($0) }.sorted()
        fields = keys.compactMap { key in dictionary[key].map { (key, $0) } }
    }

    var json: String {
        var object = JSONObject()
        for (key, value) in fields { object.add(key, value) }
        return object.line
    }

    /// A line a field, the values one below the other.
    var text: String {
        let names = fields.map { BusValue.string($0.key).readable + ":" }
        let width = names.map(\.count).max() ?? 0
        return zip(names, fields).map { name, field in
            name + String(repeating: " ", count: width - name.count + 1) + readable(field.key, field.value) + "\n"
        }.joined()
    }

    private func readable(_ key: String, _ value: BusValue) -> String {
        // The limit keeps what is no time, and would not fit into nanoseconds, a number.
        guard key == "since", let seconds = value.uint64, seconds < 9_000_000_000 else { return value.readable }
        var bytes: [UInt8] = []
        LocalTime.append(nanosecondsSince1970: Int64(seconds) * 1_000_000_000, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
