// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator
package import NotifyCore
import NotifyNames

/// What an agent leaves to the next one, as bytes: a number that says how to read the rest, and an a{sv} in the
/// serialized form of D-Bus, little-endian.
package struct Estate: Equatable {
    /// Another version can't be read. Values that a later one only adds have new keys.
    private static let version: UInt32 = 1
    private static let maximumValues = 4_194_304

    package var heritage = Heritage()
    var launches: [LaunchHeritage] = []
    var posts: [UnidentifiedPost] = []
    /// Whether something could not be read of programs: those behind the relay, or those to be started.
    private(set) var hasUnreadable = false
    /// The unique name of the agent.
    package var agent = ""
    /// What it has read from its connection and not handled.
    var unread: [UInt8] = []
    /// Whether it had a relay.
    var hasRelay = false

    /// - Returns: nil if it is too much.
    package var bytes: [UInt8]? {
        let fields: [(String, BusValue)] = [
            ("agent", .string(agent)),
            ("unread", .array(element: "y", unread.map { .number(code: UInt8(ascii: "y"), UInt64($0)) })),
            ("connections", .array(element: "a{sv}", heritage.connections.map(\.value))),
            ("processes", .array(element: "a{sv}", heritage.processes.map(\.value))),
            ("states", .array(element: "(stt)", heritage.states.map(\.value))),
            ("naps-off", .boolean(heritage.areNapsOff)),
            ("launches", .array(element: "a{sv}", launches.map(\.value))),
            ("posts", .array(element: "(ss)", posts.map(\.value))),
            ("relay", .boolean(hasRelay)),
            ("relayed", .array(element: "a{sv}", heritage.relayed.map(\.value))),
        ]
        var writer = BusValueWriter()
        writer.integer(Estate.version)
        writer.write(.dictionary(fields))
        return writer.isValid ? writer.bytes : nil
    }

    package init() {}

    /// Reads what anybody may have written.
    package init(reading bytes: [UInt8]) throws(ArgumentError) {
        let fields: BusValue? = bytes.withUnsafeBytes { bytes in
            var wire = WireReader(bytes, 0..<bytes.count, isBigEndian: false)
            guard wire.uint32() == Estate.version else { return nil }
            var reader = BusValueReader(wire, maximumCount: Estate.maximumValues)
            return Array("a{sv}".utf8).withUnsafeBytes { reader.values($0)?.first }
        }
        var reader = try FieldReader(fields)
        agent = try reader.need("agent", "s", \.string)
        guard BusNames.isConnection(agent) else { throw .value("'agent' is not the name of a connection.") }
        unread = try reader.need("unread", "ay", \.bytes)
        heritage.connections = try reader.need("connections", "aa{sv}", \.elements).compactMap(Heritage.Connection.read)
        heritage.processes = try reader.need("processes", "aa{sv}", \.elements).compactMap(Heritage.Process.read)
        heritage.states = try reader.need("states", "a(stt)", \.elements).compactMap(Heritage.State.read)
        heritage.areNapsOff = try reader.take("naps-off", "b", \.exactBoolean) ?? false
        // The rest counts without these, which an older agent does not leave.
        hasRelay = (try? reader.take("relay", "b", \.exactBoolean)) ?? false
        heritage.relayed = readable(&reader, "relayed", "aa{sv}", Heritage.Relayed.read)
        launches = readable(&reader, "launches", "aa{sv}", LaunchHeritage.read)
        posts = readable(&reader, "posts", "a(ss)", UnidentifiedPost.read)
    }

    /// - Returns: the elements of an optional value that can be read.
    private mutating func readable<Element>(
        _ reader: inout FieldReader,
        _ key: String,
        _ type: String,
        _ read: (BusValue) -> Element?
    ) -> [Element] {
        do {
            let elements = try reader.take(key, type, \.elements) ?? []
            let all = elements.compactMap(read)
            if all.count < elements.count { hasUnreadable = true }
            return all
        } catch {
            hasUnreadable = true
            return []
        }
    }
}

extension BusValue {
    fileprivate var bytes: [UInt8]? {
        elements?.map { if case .number(_, let byte) = $0 { UInt8(truncatingIfNeeded: byte) } else { 0 } }
    }

    fileprivate static func strings(_ names: some Sequence<NotifyName>) -> BusValue { .strings(names.map(\.string)) }

    fileprivate static func process(_ id: ProcessID) -> BusValue {
        .structure([.uint32(UInt32(bitPattern: id.pid)), .uint64(id.startTime), .uint32(id.user)])
    }

    fileprivate var process: ProcessID? {
        guard case .structure(let fields) = self, fields.count == 3, let pid = fields[0].uint32,
            let start = fields[1].uint64, let user = fields[2].uint32, let pid = Int32(exactly: pid), pid > 0
        else { return nil }
        return ProcessID(pid: pid, startTime: start, user: user)
    }

    fileprivate var state: LifecycleState? { string?.state }

    /// A number to which something may be added.
    fileprivate var count: UInt64? { uint64.map { min($0, 1 << 48) } }
}

extension String {
    fileprivate var state: LifecycleState? { LifecycleState(rawValue: self) }
}

extension LifecycleState? {
    fileprivate var value: BusValue { .string(self?.rawValue ?? "") }
}

extension Heritage.Connection {
    fileprivate var value: BusValue {
        .dictionary([
            ("name", .string(name)), ("process", .process(process)), ("program", .string(program)),
            ("names", .strings(subjects.names)), ("prefixes", .strings(subjects.prefixes.map(\.string))),
            ("parked", .boolean(isParked)), ("state", .string(state.rawValue)),
            ("state-after-parking", .string(stateAfterParking.rawValue)), ("pending", .strings(pending)),
            ("dropped", .uint64(dropped)), ("reported-dropped", .uint64(reportedDropped)), ("since", .uint64(since)),
            ("person", person.value), ("decided", .string(decision.state.rawValue)),
            ("decider", .string(decision.decider.name)), ("follows-desktop", .boolean(followsDesktop)),
        ])
    }

    /// - Returns: nil if it is not one: then its program is treated as if nothing were known of it.
    fileprivate static func read(_ value: BusValue) -> Heritage.Connection? {
        guard var fields = try? FieldReader(value) else { return nil }
        do {
            var connection = Heritage.Connection(process: try fields.need("process", "(utu)", \.process))
            connection.name = try fields.need("name", "s", \.string)
            guard BusNames.isConnection(connection.name) else { return nil }
            connection.program = Request.shortened(try fields.need("program", "s", \.string))
            let names = try fields.need("names", "as", \.exactStrings)
            connection.subjects = try Subjects(names: names, prefixes: fields.need("prefixes", "as", \.exactStrings))
            connection.isParked = try fields.need("parked", "b", \.exactBoolean)
            connection.state = try fields.need("state", "s", \.state)
            connection.stateAfterParking = try fields.need("state-after-parking", "s", \.state)
            let pending = try fields.need("pending", "as", \.exactStrings).prefix(PendingNames.limit)
            connection.pending = try pending.map { try NotifyName($0) }
            connection.dropped = try fields.need("dropped", "t", \.count)
            connection.reportedDropped = try fields.need("reported-dropped", "t", \.count)
            connection.since = try fields.need("since", "t", \.count)
            connection.person = try fields.need("person", "s", \.string).state
            let decided = try fields.need("decided", "s", \.state)
            connection.decision = Decision(decided, by: Decider(name: try fields.need("decider", "s", \.string)))
            connection.followsDesktop = try fields.need("follows-desktop", "b", \.exactBoolean)
            return connection
        } catch { return nil }
    }
}

extension Heritage.Relayed {
    fileprivate var value: BusValue {
        .dictionary([
            ("name", .string(name)), ("user", .uint32(user)), ("prefixes", .strings(prefixes.map(\.string))),
            ("pending", .strings(pending)),
        ])
    }

    fileprivate static func read(_ value: BusValue) -> Heritage.Relayed? {
        guard var fields = try? FieldReader(value) else { return nil }
        do {
            let name = try fields.need("name", "s", \.string)
            guard BusNames.isConnection(name) else { return nil }
            let user = try fields.need("user", "u", \.exactUInt32)
            let subjects = try Subjects(names: [], prefixes: fields.need("prefixes", "as", \.exactStrings))
            let pending = try fields.need("pending", "as", \.exactStrings).prefix(PendingNames.limit)
            return Heritage.Relayed(
                name: name,
                user: user,
                prefixes: subjects.prefixes,
                pending: try pending.map { try NotifyName($0) }
            )
        } catch { return nil }
    }
}

extension Heritage.Process {
    fileprivate var value: BusValue {
        var fields: [(String, BusValue)] = [
            ("process", .process(id)), ("wish", wish.value), ("released", .boolean(isReleased)),
            ("report", report.value),
        ]
        if let frozenFor { fields.append(("frozen-for", .uint32(frozenFor))) }
        return .dictionary(fields)
    }

    fileprivate static func read(_ value: BusValue) -> Heritage.Process? {
        guard var fields = try? FieldReader(value) else { return nil }
        do {
            var process = Heritage.Process(try fields.need("process", "(utu)", \.process))
            process.wish = try fields.need("wish", "s", \.string).state
            process.isReleased = try fields.need("released", "b", \.exactBoolean)
            process.report = try fields.need("report", "s", \.string).state
            process.frozenFor = try fields.take("frozen-for", "u", \.exactUInt32)
            return process
        } catch { return nil }
    }
}

extension Heritage.State {
    fileprivate var value: BusValue {
        .structure([.string(name.string), .uint64(entry.value), .uint64(entry.stamp)])
    }

    fileprivate static func read(_ value: BusValue) -> Heritage.State? {
        guard case .structure(let fields) = value, fields.count == 3,
            let name = fields[0].string.flatMap({ try? NotifyName($0) }), let number = fields[1].uint64,
            let stamp = fields[2].uint64
        else { return nil }
        return Heritage.State(name: name, entry: NameStateTable.Entry(value: number, stamp: stamp))
    }
}

extension LaunchEntry.Action {
    /// Its kind, and then what the file says.
    fileprivate var words: [String] {
        switch self {
        case .unit(let name): ["unit", name]
        case .command(let words): ["command"] + words
        case .activation(let name): ["activation", name]
        }
    }

    fileprivate init?(words: [String]) {
        guard let kind = words.first, let name = words.dropFirst().first else { return nil }
        switch kind {
        case "unit" where words.count == 2: self = .unit(name)
        case "command": self = .command(Array(words.dropFirst()))
        case "activation" where words.count == 2: self = .activation(name)
        default: return nil
        }
    }
}

extension LaunchHeritage {
    fileprivate var value: BusValue {
        .dictionary([
            ("title", .string(title)), ("action", .strings(action.words)), ("due", .strings(due)),
            ("missed", .strings(missed)), ("heard-names", .strings(heard.names)),
            ("heard-prefixes", .strings(heard.prefixes.map(\.string))),
            ("starts", .array(element: "t", recentStarts.map { .uint64(UInt64(max(0, $0))) })),
        ])
    }

    fileprivate static func read(_ value: BusValue) -> LaunchHeritage? {
        guard var fields = try? FieldReader(value) else { return nil }
        do {
            let title = try fields.need("title", "s", \.string)
            guard let action = LaunchEntry.Action(words: try fields.need("action", "as", \.exactStrings)) else {
                return nil
            }
            var launch = LaunchHeritage(title: title, action: action)
            launch.due = try fields.need("due", "as", \.exactStrings).map { try NotifyName($0) }
            launch.missed = try fields.need("missed", "as", \.exactStrings).map { try NotifyName($0) }
            let names = try fields.need("heard-names", "as", \.exactStrings)
            launch.heard = try Subjects(names: names, prefixes: fields.need("heard-prefixes", "as", \.exactStrings))
            launch.recentStarts = try fields.need("starts", "at", \.elements).compactMap { start in
                start.uint64.flatMap { Int64(exactly: $0) }
            }
            return launch
        } catch { return nil }
    }
}

extension UnidentifiedPost {
    fileprivate var value: BusValue { .structure([.string(name.string), .string(sender)]) }

    fileprivate static func read(_ value: BusValue) -> UnidentifiedPost? {
        guard case .structure(let fields) = value, fields.count == 2,
            let name = fields[0].string.flatMap({ try? NotifyName($0) }), let sender = fields[1].string,
            BusNames.isConnection(sender)
        else { return nil }
        return UnidentifiedPost(name, from: sender)
    }
}
