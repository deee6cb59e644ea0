// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// What is posted and observed in a simulation: four names and three prefixes. They are numbers, so that a history
/// takes only microseconds.
enum Subject {
    static let nameCount = 4
    /// How many names and prefixes there are.
    static let count = 7
    /// The rule for every name, which an agent that holds many prefixes asks for.
    static let everything = 7
    /// The two rules that together match every name, by path, and the two that match nothing, of an observer that has too
    /// many.
    static let wide = [8, 9]
    static let spares = [10, 11]
    static let ruleCount = 12
    /// A name that counts only if its owner posted it.
    static let owned = 1
    static let owner: UInt32 = 7
    /// A name that is reserved on a system bus, and has a path of its own.
    static let reserved = 0

    static let texts = ["com.apple.system.a", "user.uid.7.b", "pre.c", "pre.d", "pre.", "user.", "pre.c"]
    static let names: [NotifyName] = texts[..<nameCount].compactMap { try? NotifyName($0) }
    static let paths = names.map { WireFormat.path(for: $0) }
    static let prefixes: [NamePrefix] = texts[nameCount...].map { NamePrefix($0) }
    /// The names that each of them matches, a bit for each.
    static let masks: [UInt8] = [1, 2, 4, 8, 12, 2, 4, 15, 14, 1, 0, 0]
    /// The rules that match what is posted by the path of ordinary names, whatever its name.
    static let ordinary = [everything, wide[0]]

    static func ruleTitle(_ rule: Int) -> String { rule < count ? texts[rule] : "number \(rule)" }
    static func matches(_ subject: Int, _ name: Int) -> Bool { masks[subject] >> UInt8(name) & 1 == 1 }
    static func isPrefix(_ subject: Int) -> Bool { subject >= nameCount }

    /// A one for each name that a subject matches.
    static func each(_ subject: Int) -> SIMD4<UInt8> {
        var each = SIMD4<UInt8>.zero
        for name in 0..<nameCount where matches(subject, name) { each[name] = 1 }
        return each
    }

    static func number(of name: NotifyName) -> Int? { names.firstIndex(of: name) }

    static func number(of prefix: NamePrefix) -> Int? {
        if prefix.string.isEmpty { return everything }
        return prefixes.firstIndex(of: prefix).map { $0 + nameCount }
    }

    /// A bit for each.
    static func mask(of subjects: [Int]) -> UInt8 { subjects.reduce(0) { $0 | 1 << UInt8($1) } }

    static func numbers(_ names: [String], _ prefixes: [String]) -> [Int] {
        (0..<count).filter { (isPrefix($0) ? prefixes : names).contains(texts[$0]) }
    }

    static func names(of subjects: [Int]) -> [String] { subjects.filter { !isPrefix($0) }.map { texts[$0] } }
    static func prefixes(of subjects: [Int]) -> [String] { subjects.filter { isPrefix($0) }.map { texts[$0] } }
}

/// A post. Its number is its index in the list.
struct Post: Hashable {
    let name: Int
    let poster: Int
    /// The poster's connection.
    let connection: Int
    /// Whether the system bus's policy forbids it, so that it takes the path of ordinary names.
    let isForged: Bool

    var path: String { isForged ? WireFormat.path : Subject.paths[name] }

    /// The posters' users. The first also stands for root, which alone may post reserved names.
    static let users: [UInt32] = [Subject.owner, 8]

    /// Whether it must be believed.
    var isGenuine: Bool { !isForged && (name != Subject.owned || Post.users[poster] == Subject.owner) }
}
