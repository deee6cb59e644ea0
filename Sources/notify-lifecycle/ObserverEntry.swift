// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// One observing connection, as the agent's List has it.
struct ObserverEntry {
    /// Its unique name.
    let name: String
    let process: UInt32
    let user: UInt32
    let program: String
    let application: String
    let state: String
    /// Whether the agent has taken it off the bus, because its process was stopped.
    let isParked: Bool
    /// How many names it observes.
    let names: UInt32
    /// How many names wait for it.
    let pending: UInt32
    /// How many posts it has dropped.
    let dropped: UInt64
    /// When it came into its state, in seconds since 1970.
    let since: UInt64
    /// Who decided its state; nil if the agent does not say.
    let decider: String?
    /// Whether its program has the focus; nil if the agent does not say.
    let hasFocus: Bool?
    private let fields: [String: BusValue]

    /// The keys of an entry, in the order in which they are shown.
    private static let keys = [
        "name", "pid", "uid", "program", "application", "state", "parked", "names", "pending", "dropped", "since",
        "decider", "focused",
    ]

    /// The entries in an answer to List, by process and then by age of the connection.
    static func entries(in answer: [BusValue]) throws(LifecycleFailure) -> [ObserverEntry] {
        guard answer.count == 1, answer[0].signature == "aa{sv}", let elements = answer[0].elements else {
            let signature = answer.map(\.signature).joined()
            throw .nonsense("List", "it has the type '\(signature)' in place of 'aa{sv}'")
        }
        var entries: [ObserverEntry] = []
        for element in elements { entries.append(try ObserverEntry(element.dictionary ?? [:])) }
        return entries.sorted {
            ($0.process, $0.order.major, $0.order.minor) < ($1.process, $1.order.major, $1.order.minor)
        }
    }

    private init(_ fields: [String: BusValue]) throws(LifecycleFailure) {
        func take<Value>(_ key: String, _ read: (BusValue) -> Value?) throws(LifecycleFailure) -> Value {
            guard let field = fields[key] else { throw .nonsense("List", "an entry has no '\(key)'") }
            guard let value = read(field) else {
                throw .nonsense("List", "the '\(key)' of an entry has the type '\(field.signature)'")
            }
            return value
        }
        self.fields = fields
        name = try take("name", \.string)
        process = try take("pid", \.uint32)
        user = try take("uid", \.uint32)
        program = try take("program", \.string)
        application = try take("application", \.string)
        state = try take("state", \.string)
        isParked = try take("parked", \.boolean)
        names = try take("names", \.uint32)
        pending = try take("pending", \.uint32)
        dropped = try take("dropped", \.uint64)
        since = try take("since", \.uint64)
        decider = fields["decider"]?.string
        hasFocus = fields["focused"]?.boolean
    }

    /// The numbers of the unique name: as text `:1.10` would come before `:1.9`.
    private var order: (major: UInt64, minor: UInt64) {
        let parts = name.drop { $0 == ":" }.split(separator: ".").map { UInt64($0) ?? .max }
        return (parts.first ?? .max, parts.dropFirst().first ?? .max)
    }

    /// All that the agent said about it, on one line.
    var json: String {
        var object = JSONObject()
        let others = fields.keys.filter { !ObserverEntry.keys.contains($0) }.sorted()
        for key in ObserverEntry.keys + others {
            if let value = fields[key] { object.add(key, value) }
        }
        return object.line
    }
}
