// SPDX-License-Identifier: Apache-2.0

import NotifyNames
package import NotifyWire

extension AgentInterface {
    /// Asks for the agent's status.
    package struct Status: ProtocolCall, WithoutArguments {
        package static let member = "Status"

        package init() {}

        /// Everything that an agent reports is shown, so nothing here is interpreted except by ``sources``.
        package struct Answer: ProtocolArguments {
            package static let parameters = [Parameter("status", "a{sv}")]
            /// In display order.
            package private(set) var fields: [(key: String, value: BusValue)]

            package init(reading arguments: [BusValue]) throws(ArgumentError) {
                let reader = try FieldReader(arguments.first)
                let first = ["version", "pid"]
                let rest = reader.rest.filter { !first.contains($0.key) }.sorted { $0.key < $1.key }
                fields = first.compactMap { key in reader.rest[key].map { (key, $0) } } + rest
            }

            package var arguments: [BusValue] { [.dictionary(fields.map { ($0.key, $0.value) })] }

            package static func == (one: Answer, other: Answer) -> Bool {
                one.fields.elementsEqual(other.fields) { $0 == $1 }
            }
        }
    }

    /// The status of an agent.
    package struct StatusReport: Sendable {
        package var version = ""
        package var process: UInt32 = 0
        /// When it started, in seconds since 1970.
        package var since: UInt64 = 0
        package var observers: UInt32 = 0
        package var processes: UInt32 = 0
        package var foreground: UInt32 = 0
        package var background: UInt32 = 0
        package var suspended: UInt32 = 0
        package var parked: UInt32 = 0
        /// How many names and prefixes it matches on behalf of others.
        package var held: UInt32 = 0
        package var sources: [SourceEntry] = []
        package var events: [EventEntry] = []
        package var launches: [LaunchStatus] = []
        /// What is wrong with the agent's settings, for display.
        package var faults: [String] = []
        /// The program that has the focus; nil if no source knows.
        package var focus: FocusEntry?
        /// Whether programs nap, for display.
        package var naps = ""
        /// The longest time for which the agent has done one thing, in microseconds: no other was served meanwhile.
        package var longestStep: UInt64 = 0

        package init() {}

        package var arguments: [BusValue] {
            [
                .dictionary([
                    ("version", .string(version)), ("pid", .uint32(process)), ("since", .uint64(since)),
                    ("observers", .uint32(observers)), ("processes", .uint32(processes)),
                    ("foreground", .uint32(foreground)), ("background", .uint32(background)),
                    ("suspended", .uint32(suspended)), ("parked", .uint32(parked)), ("held", .uint32(held)),
                    ("longest-step", .uint64(longestStep)), ("naps", .string(naps)),
                    ("focus", .dictionary(focus?.fields ?? [])),
                    ("sources", .array(element: "a{sv}", sources.map(\.value))),
                    ("events", .array(element: "a{sv}", events.map(\.value))),
                    ("launches", .array(element: "a{sv}", launches.map(\.value))),
                    ("faults", .array(element: "s", faults.map { .string($0) })),
                ])
            ]
        }
    }

    /// The program that has the focus.
    package struct FocusEntry: Equatable, Sendable {
        /// 0 if none has it.
        package var process: UInt32
        package var application: String
        /// What the desktop calls the application of the window.
        package var window: String
        package var source: String

        package init(process: UInt32, application: String, window: String, source: String) {
            (self.process, self.application, self.window, self.source) = (process, application, window, source)
        }

        /// Reads the field "focus" of Status; nil if it has none, or an empty one.
        package init?(_ status: Status.Answer) {
            guard let value = status.fields.first(where: { $0.key == "focus" })?.value,
                var reader = try? FieldReader(value), let process = try? reader.need("pid", "u", \.exactUInt32)
            else { return nil }
            self.process = process
            application = (try? reader.take("application", "s", \.string)) ?? ""
            window = (try? reader.take("window", "s", \.string)) ?? ""
            source = (try? reader.take("source", "s", \.string)) ?? ""
        }

        package var fields: [(key: String, value: BusValue)] {
            [
                ("pid", .uint32(process)), ("application", .string(application)), ("window", .string(window)),
                ("source", .string(source)),
            ]
        }
    }

    /// A source of facts.
    package struct SourceEntry: Equatable, Sendable {
        package var name: String
        package var isLive: Bool
        /// Why it is not live, for display.
        package var reason: String
        /// The last fact, for display.
        package var fact: String
        /// How many facts it has reported.
        package var facts: UInt64

        package init(name: String, isLive: Bool, reason: String, fact: String, facts: UInt64) {
            self.name = name
            self.isLive = isLive
            self.reason = reason
            self.fact = fact
            self.facts = facts
        }

        /// Reads the field "sources" of Status.
        package static func entries(in value: BusValue) throws(ArgumentError) -> [SourceEntry] {
            try value.entries(of: "sources") { (value) throws(ArgumentError) in try SourceEntry(value) }
        }

        private init(_ value: BusValue) throws(ArgumentError) {
            var reader = try FieldReader(value)
            name = try reader.need("name", "s", \.string)
            isLive = try reader.need("live", "b", \.exactBoolean)
            reason = try reader.take("reason", "s", \.string) ?? ""
            fact = try reader.take("fact", "s", \.string) ?? ""
            facts = try reader.need("facts", "t", \.uint64)
        }

        fileprivate var value: BusValue {
            .dictionary([
                ("name", .string(name)), ("live", .boolean(isLive)), ("reason", .string(reason)),
                ("fact", .string(fact)), ("facts", .uint64(facts)),
            ])
        }
    }

    /// A name that the agent posts when something happens.
    package struct EventEntry: Equatable, Sendable {
        package var name: String
        package var isLive: Bool
        /// Why it is not live, for display.
        package var reason: String
        /// How many observers want it.
        package var wanted: UInt32
        package var posts: UInt64
        /// When it was posted last, in seconds since 1970.
        package var last: UInt64

        package init(name: String, isLive: Bool, reason: String, wanted: UInt32, posts: UInt64, last: UInt64) {
            self.name = name
            self.isLive = isLive
            self.reason = reason
            self.wanted = wanted
            self.posts = posts
            self.last = last
        }

        /// Reads the field "events" of Status.
        package static func entries(in value: BusValue) throws(ArgumentError) -> [EventEntry] {
            try value.entries(of: "events") { (value) throws(ArgumentError) in try EventEntry(value) }
        }

        private init(_ value: BusValue) throws(ArgumentError) {
            var reader = try FieldReader(value)
            name = try reader.need("name", "s", \.string)
            isLive = try reader.need("live", "b", \.exactBoolean)
            reason = try reader.take("reason", "s", \.string) ?? ""
            wanted = try reader.need("wanted", "u", \.uint32)
            posts = try reader.need("posts", "t", \.uint64)
            last = try reader.need("last", "t", \.uint64)
        }

        fileprivate var value: BusValue {
            .dictionary([
                ("name", .string(name)), ("live", .boolean(isLive)), ("reason", .string(reason)),
                ("wanted", .uint32(wanted)), ("posts", .uint64(posts)), ("last", .uint64(last)),
            ])
        }
    }
}

extension AgentInterface {
    /// What is started for names, and its progress.
    package struct LaunchStatus: Equatable, Sendable {
        /// The name of its file, without `.conf`.
        package var name = ""
        package var file = ""
        package var names: [String] = []
        package var prefixes: [String] = []
        /// `start`, `run` or `activate`.
        package var action = ""
        /// The unit, the command line or the bus name.
        package var program = ""
        /// The unit in which a command runs, or a pattern of such units; empty for others.
        package var unit = ""
        /// `idle`, `settling`, `starting`, `running`, `limited`, `off`, `waking`, or `broken` if the file can't be used.
        package var state = ""
        /// Why it is off or broken, for display.
        package var reason = ""
        /// How often it was started, and how often that failed.
        package var starts: UInt64 = 0
        package var failures: UInt64 = 0
        /// How many posted names are still due.
        package var due: UInt32 = 0
        /// The result of the last start, for display.
        package var result = ""

        package init() {}

        /// Reads the field "launches" of Status.
        package static func entries(in value: BusValue) throws(ArgumentError) -> [LaunchStatus] {
            try value.entries(of: "launches") { (value) throws(ArgumentError) in try LaunchStatus(value) }
        }

        private init(_ value: BusValue) throws(ArgumentError) {
            var reader = try FieldReader(value)
            name = try reader.need("name", "s", \.string)
            file = try reader.take("file", "s", \.string) ?? ""
            names = try reader.take("names", "as", \.strings) ?? []
            prefixes = try reader.take("prefixes", "as", \.strings) ?? []
            action = try reader.take("action", "s", \.string) ?? ""
            program = try reader.take("program", "s", \.string) ?? ""
            unit = try reader.take("unit", "s", \.string) ?? ""
            state = try reader.need("state", "s", \.string)
            reason = try reader.take("reason", "s", \.string) ?? ""
            starts = try reader.need("starts", "t", \.uint64)
            failures = try reader.take("failures", "t", \.uint64) ?? 0
            due = try reader.need("due", "u", \.uint32)
            result = try reader.take("result", "s", \.string) ?? ""
        }

        package var value: BusValue {
            .dictionary([
                ("name", .string(name)), ("file", .string(file)), ("names", .strings(names)),
                ("prefixes", .strings(prefixes)), ("action", .string(action)), ("program", .string(program)),
                ("unit", .string(unit)),
                ("state", .string(state)), ("reason", .string(reason)), ("starts", .uint64(starts)),
                ("failures", .uint64(failures)), ("due", .uint32(due)), ("result", .string(result)),
            ])
        }
    }
}
