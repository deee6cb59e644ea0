// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import NotifyCore

/// What a sandboxed program reports to the relay, one call at a time.
@Suite struct RelayReportsTests {
    private typealias Batch = RelayReports.Batch

    @Test func `what changes during a call goes into the next one`() throws {
        var reports = RelayReports()
        reports.add(Batch(names: ["a"]))
        let firstCalls = reports.next()
        let first = try #require(firstCalls)
        #expect(first == (Batch(), Batch(names: ["a"])))
        reports.add(Batch(names: ["b", "c"], prefixes: ["p"]))
        reports.remove(Batch(names: ["a", "c"]))
        reports.add(Batch(names: ["a"]))
        let none = reports.next() == nil
        #expect(none)
        let isFinal = reports.wereAnswered(first.added, isRefusal: false)
        #expect(isFinal)
        let secondCalls = reports.next()
        let second = try #require(secondCalls)
        #expect(second == (Batch(names: ["a", "c"]), Batch(names: ["a", "b"], prefixes: ["p"])))
        _ = reports.wereAnswered(second.added, isRefusal: false)
        let nothing = reports.next() == nil
        #expect(nothing)
    }

    @Test func `an answer is not about what is observed again since`() throws {
        var reports = RelayReports()
        reports.add(Batch(names: ["a", "b"], prefixes: ["p"]))
        let next = reports.next()
        let added = try #require(next).added
        reports.remove(Batch(names: ["a"], prefixes: ["p"]))
        reports.add(Batch(names: ["a"]))
        #expect(reports.current(of: added) == Batch(names: ["b"]))
    }

    @Test func `the calls are small, and nothing is added before its removal is reported`() throws {
        var reports = RelayReports()
        let names = (0..<3_000).map { "n\($0)" }
        reports.remove(Batch(names: names))
        reports.add(Batch(names: names))
        var removed: Set<String> = []
        var added: Set<String> = []
        while let (old, new) = reports.next() {
            #expect(old.count <= RelayReports.limit && new.count <= RelayReports.limit)
            removed.formUnion(old.names)
            if !new.isEmpty { #expect(removed.count == names.count) }
            added.formUnion(new.names)
            _ = reports.wereAnswered(new, isRefusal: false)
        }
        #expect(added == Set(names))
    }

    @Test func `of many names only the one that is refused fails`() throws {
        var reports = RelayReports()
        reports.add(Batch(names: (0..<100).map { "n\($0)" }, prefixes: ["p"]))
        var accepted: Set<String> = []
        var refused: [Batch] = []
        var count = 0
        while let (_, added) = reports.next() {
            count += 1
            let isRefusal = added.names.contains("n42")
            guard reports.wereAnswered(added, isRefusal: isRefusal) else { continue }
            if isRefusal { refused.append(added) } else { accepted.formUnion(added.names.union(added.prefixes)) }
        }
        #expect(refused == [Batch(names: ["n42"])])
        #expect(accepted.count == 100)
        #expect(count < 20)
    }

    @Test func `what is canceled during a call that is refused is not reported again`() throws {
        var reports = RelayReports()
        reports.add(Batch(names: ["a", "b", "c"]))
        let calls = reports.next()
        let first = try #require(calls)
        reports.remove(Batch(names: ["b"]))
        let isFinal = reports.wereAnswered(first.added, isRefusal: true)
        #expect(!isFinal)
        var added: Set<String> = []
        while let (_, new) = reports.next() {
            added.formUnion(new.names)
            _ = reports.wereAnswered(new, isRefusal: false)
        }
        #expect(added == ["a", "c"])
    }

    @Test func `a prefix that is given up before it was reported is not reported`() throws {
        var reports = RelayReports()
        reports.add(Batch(prefixes: ["p", "q"]))
        reports.remove(Batch(prefixes: ["p"]))
        let calls = reports.next()
        #expect(try #require(calls) == (Batch(prefixes: ["p"]), Batch(prefixes: ["q"])))
    }
}
