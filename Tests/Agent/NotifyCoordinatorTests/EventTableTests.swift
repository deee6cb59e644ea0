// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames
import Testing

@Suite struct EventTableTests {
    private static let (a, b, c): (NotifyName, NotifyName, NotifyName) = (
        "com.example.a", "com.example.b", "com.example.c"
    )

    private static func makeTable() -> EventTable {
        EventTable([a: ["one"], b: ["one"], c: ["two"]], aliases: [:])
    }

    @Test func `a source starts with the first observer and stops ten seconds after the last one has gone`() {
        var table = Self.makeTable()
        #expect(table.handle(.wanted(Self.a, true), at: 0) == [.start(source: "one", wanted: [Self.a])])
        #expect(table.handle(.wanted(Self.b, true), at: 1) == [.change(source: "one", wanted: [Self.a, Self.b])])
        #expect(table.handle(.wanted(Self.a, false), at: 2) == [.change(source: "one", wanted: [Self.b])])
        let end = 3 + EventTable.lingering
        #expect(table.handle(.wanted(Self.b, false), at: 3) == [.alarm(at: end)])
        #expect(table.handle(.alarm, at: end - 1) == [.alarm(at: end)])
        // An observer came back in time.
        #expect(table.handle(.wanted(Self.b, true), at: end - 1) == [.change(source: "one", wanted: [Self.b])])
        #expect(table.handle(.alarm, at: end).isEmpty)
        #expect(table.handle(.wanted(Self.b, false), at: end) == [.alarm(at: end + EventTable.lingering)])
        let outputs = table.handle(.alarm, at: end + EventTable.lingering)
        #expect(outputs.contains(.stop(source: "one")))
    }

    @Test
    func `reading a state waits for the source's first report, for a second at most, and counts as interest`() {
        var table = Self.makeTable()
        #expect(table.handle(.asked(Self.c, 1), at: 0).first == .start(source: "two", wanted: [Self.c]))
        let change = EventChange(Self.c, state: 5, isPosted: false)
        #expect(table.handle(.reported("two", .found([change])), at: 1).first == .set(Self.c, 5))
        #expect(table.handle(.reported("two", .live), at: 1).first == .answer(1))
        #expect(table.handle(.asked(Self.c, 2), at: 2).first == .answer(2))
        _ = table.handle(.asked(Self.a, 3), at: 2)
        #expect(!table.handle(.alarm, at: 1 + EventTable.timeLimit).contains(.answer(3)))
        #expect(table.handle(.alarm, at: 2 + EventTable.timeLimit).contains(.answer(3)))
        let ends = [2, 4].flatMap { table.handle(.alarm, at: $0 * EventTable.lingering) }
        #expect(ends.contains(.stop(source: "one")) && ends.contains(.stop(source: "two")))
    }

    @Test func `a source that fails is off and says why, and its states are unknown until it is live again`() {
        var table = Self.makeTable()
        _ = table.handle(.wanted(Self.c, true), at: 0)
        #expect(table.handle(.reported("two", .off("it is not there")), at: 0) == [.set(Self.c, nil)])
        #expect(table.entries.first { $0.name == Self.c }?.reason == "it is not there")
        _ = table.handle(.reported("two", .live), at: 0)
        #expect(table.entries.first { $0.name == Self.c }?.isLive == true)
        // A stopped source reports nothing more.
        #expect(table.handle(.reported("one", .found([EventChange(Self.a)])), at: 0).isEmpty)
    }

    @Test func `two aliases are posted on one edge each`() throws {
        let lock = try #require(SystemEvent.all.first { $0.name == "org.notifybus.session.lock" })
        let aliases = SystemEvent.all.filter { $0.original == lock.name }
        var table = EventTable([lock.name: ["locker"]], aliases: [lock.name: aliases])
        _ = table.handle(.wanted(lock.name, true), at: 0)
        func posts(_ state: UInt64) -> Set<String> {
            let outputs = table.handle(.reported("locker", .found([EventChange(lock.name, state: state)])), at: 0)
            return Set(outputs.compactMap { if case .post(let name, _) = $0 { name.string } else { nil } })
        }
        let always: Set = ["org.notifybus.session.lock", "com.apple.springboard.lockstate"]
        #expect(posts(1) == always.union(["com.apple.screenIsLocked", "com.apple.sessionagent.screenIsLocked"]))
        #expect(posts(0) == always.union(["com.apple.screenIsUnlocked", "com.apple.sessionagent.screenIsUnlocked"]))
    }

    @Test func `all sources of a name start, and the first decides when its state is known`() {
        var table = EventTable([Self.a: ["one", "two"], Self.b: ["two"]], aliases: [:])
        #expect(table.names == [Self.a, Self.b])
        #expect(
            table.handle(.asked(Self.a, 1), at: 5) == [
                .start(source: "one", wanted: [Self.a]), .start(source: "two", wanted: [Self.a]),
                .alarm(at: 5 + EventTable.timeLimit),
            ]
        )
        // Facts that decide about programs say nothing about events.
        let alarm = EventTable.Effect.alarm(at: 5 + EventTable.timeLimit)
        #expect(table.handle(.reported("one", .fact(.screenSaver(isActive: true))), at: 6) == [alarm])
        #expect(table.handle(.reported("two", .live), at: 6) == [alarm])
        #expect(
            table.handle(.reported("one", .live), at: 7) == [.answer(1), .alarm(at: 5 + EventTable.lingering)]
        )
        #expect(
            table.handle(.asked(Self.a, 2), at: 8) == [.answer(2), .alarm(at: 8 + EventTable.lingering)]
        )
        // No source knows anything about other names.
        #expect(table.handle(.asked(Self.c, 3), at: 9) == [.answer(3), .alarm(at: 8 + EventTable.lingering)])
    }

    @Test func `a caller that waits for a source is answered once, when it is off or after a second`() {
        var table = Self.makeTable()
        _ = table.handle(.asked(Self.a, 1), at: 0)
        _ = table.handle(.asked(Self.b, 2), at: 10)
        _ = table.handle(.asked(Self.b, 3), at: 20)
        let first = table.handle(.alarm, at: EventTable.timeLimit)
        #expect(first == [.answer(1), .alarm(at: 10 + EventTable.timeLimit)])
        let outputs = table.handle(.reported("one", .off("gone")), at: EventTable.timeLimit + 5)
        #expect(
            Set(outputs.prefix(2).map { "\($0)" }) == Set([Self.a, Self.b].map { "\(EventTable.Effect.set($0, nil))" })
        )
        #expect(outputs.dropFirst(2) == [.answer(2), .answer(3), .alarm(at: EventTable.lingering)])
        #expect(table.handle(.alarm, at: 2 * EventTable.timeLimit) == [.alarm(at: EventTable.lingering)])
    }

    @Test func `a source that is at rest says so, and its states are unknown`() {
        var table = Self.makeTable()
        func reason(of name: NotifyName) -> String? { table.entries.first { $0.name == name }?.reason }
        #expect(table.entries.map(\.name) == [Self.a, Self.b, Self.c])
        #expect(reason(of: Self.c) == "idle until needed")
        _ = table.handle(.wanted(Self.c, true), at: 0)
        #expect(reason(of: Self.c) == "has not reported anything yet" && reason(of: Self.a) == "idle until needed")
        _ = table.handle(.reported("two", .live), at: 0)
        #expect(reason(of: Self.c) == "")
        // Wanted by one more, it only goes on.
        #expect(table.handle(.wanted(Self.c, true), at: 0).isEmpty)
        _ = table.handle(.wanted(Self.c, false), at: 0)
        #expect(
            table.handle(.alarm, at: EventTable.lingering) == [.stop(source: "two"), .set(Self.c, nil)]
        )
        #expect(reason(of: Self.c) == "idle until needed" && table.entries.allSatisfy { !$0.isLive })
        #expect(
            table.handle(.wanted(Self.c, true), at: 2 * EventTable.lingering) == [
                .start(source: "two", wanted: [Self.c])
            ]
        )
    }

    @Test func `posts are counted, and the last one is remembered`() {
        var table = Self.makeTable()
        table.hasPosted(Self.b, wallClock: 7)
        table.hasPosted(Self.b, wallClock: 9)
        #expect(table.entries.map(\.posts) == [0, 2, 0] && table.entries.map(\.last) == [0, 9, 0])
    }

    @Test func `what has only become known is not posted, and a post without a state leaves it`() {
        var table = Self.makeTable()
        _ = table.handle(.wanted(Self.a, true), at: 0)
        func outputs(_ change: EventChange) -> [EventTable.Effect] {
            table.handle(.reported("one", .found([change])), at: 0)
        }
        #expect(outputs(EventChange(Self.a, state: 4, isPosted: false)) == [.set(Self.a, 4)])
        #expect(outputs(EventChange(Self.a)) == [.post(Self.a, isAlias: false)])
        #expect(outputs(EventChange(Self.a, state: 5)) == [.set(Self.a, 5), .post(Self.a, isAlias: false)])
    }

    @Test func `an alias has the state of the name that it stands for`() throws {
        let lock = try #require(SystemEvent.all.first { $0.name == "org.notifybus.session.lock" })
        let aliases = SystemEvent.all.filter { $0.original == lock.name }
        var table = EventTable([lock.name: ["locker"]], aliases: [lock.name: aliases])
        _ = table.handle(.wanted(lock.name, true), at: 0)
        let outputs = table.handle(.reported("locker", .found([EventChange(lock.name, state: 1)])), at: 0)
        for name in [lock.name] + aliases.map(\.name) { #expect(outputs.contains(.set(name, 1)), "\(name)") }
    }
}
