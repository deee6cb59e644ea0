// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// `walks.txt` leads through the sources, function by function; Documentation/internals.md has its counts. If a
/// function on a walk moves, follow the walk again and write down what you find.
@Suite struct WalkTests {
    @Test(arguments: Walk.all)
    func `each stop of a walk is a file with the functions that it names`(walk: Walk) throws {
        var declared: [String: Set<String>] = [:]
        for stop in walk.stops {
            let path = try #require(try Sources.path(stop.file), "\(stop): there is no such file, or several")
            let names = try declared[path] ?? Sources.declarations(in: readFile(path))
            declared[path] = names
            #expect(!stop.functions.isEmpty, "\(stop): it names no function")
            for function in stop.functions {
                #expect(names.contains(function), "\(stop): \(function) is not declared in \(path)")
            }
        }
    }

    @Test(arguments: Walk.all)
    func `each stop of a walk is a change of file`(walk: Walk) {
        for (before, stop) in zip(walk.stops, walk.stops.dropFirst()) {
            #expect(before.file != stop.file, "\(stop): it belongs to the line before")
        }
        for stop in walk.stops {
            #expect(!Walk.neverStops.contains(stop.file), "\(stop): the introduction leaves this file out")
        }
    }

    @Test(arguments: Walk.all)
    func `a walk returns only to a file that it has come from`(walk: Walk) {
        #expect(walk.stops.first?.kind == .step, "\(walk.title)")
        var known: Set<String> = []
        for stop in walk.stops {
            #expect(stop.kind != .wayBack || known.contains(stop.file), "\(stop): the walk was never there")
            known.insert(stop.file)
        }
    }

    @Test func `the table of internals has the counts of the walks`() throws {
        #expect(Walk.all.count == 5)
        let page = try readLines("\(packageFolder)/Documentation/internals.md")
        let head = try #require(page.firstIndex { $0.hasPrefix("| Walk |") }, "There is no table of walks.")
        let table = page[head...].prefix { $0.hasPrefix("|") }.dropFirst(2)
        #expect(table.count == Walk.all.count)
        for (row, walk) in zip(table, Walk.all) { #expect(row == walk.row, "walks.txt:\(walk.line)") }
    }
}

/// One of the walks in `walks.txt`.
struct Walk: CustomTestStringConvertible {
    enum Kind { case step, wayBack, helper }

    struct Stop: CustomStringConvertible {
        let line: Int
        let text: String
        let kind: Kind
        let file: String
        let functions: [String]

        var description: String { "walks.txt:\(line): \(text)" }

        init(_ text: String, line: Int) {
            (self.text, self.line) = (text, line)
            kind = text.hasPrefix("<") ? .wayBack : text.hasPrefix("+") ? .helper : .step
            let words = text.dropFirst(kind == .step ? 0 : 1).split(separator: " ", maxSplits: 1)
            file = words.first.map { String($0) } ?? ""
            functions = words.dropFirst().first?.split(separator: ", ").map { String($0) } ?? []
        }
    }

    let title: String
    let line: Int
    private(set) var stops: [Stop] = []

    var testDescription: String { title }

    /// What the table in internals.md says of it.
    var row: String {
        "| \(title) | \(stops.count) / \(Set(stops.map(\.file)).count) | \(stops.count { $0.kind == .step }) |"
    }

    private static let lines = (try? readLines("\(packageFolder)/Tests/Commands/ManualTests/walks.txt")) ?? []

    static let all = lines.enumerated().reduce(into: [Walk]()) { walks, entry in
        let (text, line) = (entry.element, entry.offset + 1)
        if text.hasPrefix("# ") {
            walks.append(Walk(title: String(text.dropFirst(2)), line: line))
        } else if !text.isEmpty, !walks.isEmpty {
            walks[walks.count - 1].stops.append(Stop(text, line: line))
        }
    }

    /// The files that the introduction names.
    static let neverStops = Set(
        lines.prefix { !$0.hasPrefix("# ") }.flatMap { line in
            line.matches(of: /[A-Za-z+]+\.swift/).map { String($0.output) }
        }
    )

    private init(title: String, line: Int) { (self.title, self.line) = (title, line) }
}

private enum Sources {
    private static let paths = Result {
        try run("find", ["\(packageFolder)/Sources", "-name", "*.swift"]).output.split(separator: "\n")
    }

    /// The path of a file, given its name or the end of its path; nil if there is none, or several.
    static func path(_ file: String) throws -> String? {
        let found = try paths.get().filter { $0.hasSuffix("/\(file)") }
        return found.count == 1 ? found.first.map { String($0) } : nil
    }

    /// The names of functions, variables and cases, and `init`.
    static func declarations(in source: String) -> Set<String> {
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let words = source.utf8.split { !letters.contains($0 | 0x20) && !(0x30...0x39).contains($0) && $0 != 0x5f }
            .map { String(Substring($0)) }
        var names = Set(zip(words, words.dropFirst()).filter { ["func", "var", "case"].contains($0.0) }.map(\.1))
        if source.contains(/[^.]\binit[?<(]/) { names.insert("init") }
        return names
    }
}
