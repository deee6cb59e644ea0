// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// The fuzzer's bytes, read as decisions. Parts that are equal in two inputs are decided equally.
struct Choices {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = Array(bytes) }

    /// Whether everything has been decided; from then on all bytes are 0.
    var isOver: Bool { position >= bytes.count }

    mutating func byte() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }

    /// What has not been read yet.
    mutating func rest() -> [UInt8] {
        defer { position = bytes.count }
        return Array(bytes.dropFirst(position))
    }

    mutating func number(below limit: Int) -> Int { limit < 2 ? 0 : Int(byte()) % limit }

    /// True once in `count` times.
    mutating func once(in count: Int) -> Bool { number(below: count) == count - 1 }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(below: elements.count)] }

    /// Where arithmetic goes wrong.
    private static let edges: [UInt64] = [
        0, 1, 2, 255, 1 << 31 - 1, 1 << 31, 1 << 32 - 1, 1 << 32, 1 << 53, 1 << 63 - 1, 1 << 63, .max - 1, .max,
    ]

    mutating func number() -> UInt64 {
        let choice = number(below: Choices.edges.count + 3)
        return choice < Choices.edges.count ? Choices.edges[choice] : UInt64(byte())
    }

    private static let reals: [Double] = [
        0, -0.0, 1, -1, 0.5, 100, 2_147_483_648, 4_294_967_296, 9.3e18, -9.3e18, 1.9e19, 1e308, .nan, .infinity,
        -.infinity,
    ]

    mutating func real() -> Double { pick(Choices.reals) }

    private static let words = [
        "", ":", ":1.1", ":1.2", ":1.3", "pid:1", "pid:2147483647", "pid:2147483648", "app:org.example.App",
        "foreground",
        "background", "suspended", "com.example.a", "com.example.b", "com.example.", "self.x", "user.uid.0.x",
        "com.apple.system.timezone", "active", "inactive", "failed", "done", "\u{1b}[2J\n", "é\u{202e}",
        "org.notifybus.Agent1", "notifybus-launch-run-18446744073709551615.service",
        "/org/freedesktop/systemd1/unit/unit_2eservice",
    ]

    mutating func text() -> String {
        switch number(below: 24) {
        case 0: String(repeating: "x", count: 1 + number(below: 2) * 511)
        case 1: String(decoding: (0..<number(below: 9)).map { _ in byte() | 1 }, as: UTF8.self)
        default: pick(Choices.words)
        }
    }

    mutating func texts() -> [String] { (0..<number(below: 5)).map { _ in text() } }

    private static let names: [NotifyName] = [
        "com.example.a", "com.example.b", "com.example.c", "com.example.a.b", "com.apple.system.timezone",
        "org.notifybus.system.sleep", "user.uid.0.x",
    ]

    mutating func name() -> NotifyName { pick(Choices.names) }
    mutating func names() -> [NotifyName] { (0..<number(below: 4)).map { _ in name() } }

    private static let prefixes = ["", "com.", "com.example.", "com.example.a", "org.", "x"]

    mutating func subjects() -> Subjects {
        Subjects(
            names: Set(names()),
            prefixes: Set((0..<number(below: 3)).map { _ in NamePrefix(pick(Choices.prefixes)) })
        )
    }

    mutating func state() -> LifecycleState { pick([.foreground, .background, .suspended]) }
}

/// Random values of given types.
extension Choices {
    mutating func values(of signature: String) -> [BusValue] {
        var rest = signature[...]
        var values: [BusValue] = []
        while let type = Choices.takeType(&rest) { values.append(value(of: type)) }
        return values
    }

    private static func takeType(_ rest: inout Substring) -> Substring? {
        guard let first = rest.first else { return nil }
        let start = rest
        rest.removeFirst()
        switch first {
        case "a": _ = takeType(&rest)
        case "(", "{":
            while let next = rest.first, next != ")", next != "}" { _ = takeType(&rest) }
            if !rest.isEmpty { rest.removeFirst() }
        default: break
        }
        return start[..<rest.startIndex]
    }

    mutating func signature() -> String { (0..<number(below: 4)).map { _ in type(depth: 0) }.joined() }

    private mutating func type(depth: Int) -> String {
        switch number(below: depth < 3 ? 14 : 10) {
        case 0: "s"
        case 1: "u"
        case 2: "t"
        case 3: "b"
        case 4: "o"
        case 5: "d"
        case 6: "x"
        case 7: "i"
        case 8: "y"
        case 9: "h"
        case 10: "v"
        case 11: "a" + type(depth: depth + 1)
        case 12: "(" + type(depth: depth + 1) + type(depth: depth + 1) + ")"
        default: "a{sv}"
        }
    }

    /// Keys that the agent, an observer or a command looks for.
    static let keys: [(key: String, type: String)] = [
        ("names", "as"), ("prefixes", "as"), ("state", "s"), ("previous", "s"), ("earlier", "as"), ("decider", "s"),
        ("followsDesktop", "b"), ("program", "s"), ("states", "a(stt)"), ("socket", "h"), ("UnixUserID", "u"),
        ("ProcessID", "u"), ("LinuxSecurityLabel", "ay"), ("ActiveState", "s"), ("InhibitDelayMaxUSec", "t"),
        ("PreparingForSleep", "b"), ("PreparingForShutdown", "b"), ("Active", "b"), ("LockedHint", "b"), ("Type", "s"),
        ("Type", "u"), ("Class", "s"), ("State", "s"), ("State", "u"), ("IdleHint", "b"), ("OnBattery", "b"),
        ("LidIsClosed", "b"), ("IsPresent", "b"), ("Percentage", "d"), ("WarningLevel", "u"), ("TimeToEmpty", "x"),
        ("ActiveProfile", "s"), ("PerformanceDegraded", "s"), ("ExecMainStartTimestampMonotonic", "t"),
        ("InactiveExitTimestampMonotonic", "t"), ("Result", "s"), ("MainPID", "u"), ("NRestarts", "u"),
    ]

    mutating func value(of type: Substring, depth: Int = 0) -> BusValue {
        guard let code = type.utf8.first else { return .string("") }
        switch type.first {
        case "s": return .string(text())
        case "o":
            return .text(
                code: code,
                pick(["/", "/a", "/org/freedesktop/systemd1/job/1", "/org/freedesktop/login1/session/_31"])
            )
        case "g": return .text(code: code, pick(["", "s", "a{sv}"]))
        case "d": return .double(real())
        case "b": return .number(code: code, UInt64(number(below: 2)))
        case "y": return .number(code: code, UInt64(byte()))
        case "n", "q": return .number(code: code, number() & 0xffff)
        case "i", "u", "h": return .number(code: code, number() & 0xffff_ffff)
        case "x", "t": return .number(code: code, number())
        case "v":
            let inner = depth > 3 ? "s" : self.type(depth: 2)
            return .variant(value(of: inner[...], depth: depth + 1))
        case "a":
            let element = type.dropFirst()
            if element == "{sv}" {
                return .dictionary(
                    (0..<number(below: 8)).map { _ in
                        let (key, type) = pick(Choices.keys)
                        return (key, value(of: once(in: 8) ? self.type(depth: 2)[...] : type[...], depth: depth + 1))
                    }
                )
            }
            return .array(
                element: String(element),
                (0..<number(below: 4)).map { _ in value(of: element, depth: depth + 1) }
            )
        case "(", "{":
            var rest = type.dropFirst().dropLast()
            var fields: [BusValue] = []
            while let next = Choices.takeType(&rest) { fields.append(value(of: next, depth: depth + 1)) }
            return code == UInt8(ascii: "(") || fields.count != 2 ? .structure(fields) : .entry(fields[0], fields[1])
        default: return .string("")
        }
    }
}
