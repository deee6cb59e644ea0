// SPDX-License-Identifier: Apache-2.0

import GRDB
import Glibc
import Logging
import NotifyBus
import NotifyGRDB
import ServiceLifecycle
import TestSupport
import Testing

private let changed: NotifyName = "com.example.rows.changed"

/// The trait GRDB.
@Suite struct DatabaseTests {

    /// A file with an empty table.
    private func makeDatabase(in folder: TemporaryFolder) throws -> DatabasePool {
        let pool = try DatabasePool(path: folder.path + "/rows.sqlite")
        try pool.write { database in
            try database.execute(
                sql: "CREATE TABLE IF NOT EXISTS row (who INTEGER, number INTEGER, UNIQUE (who, number))"
            )
        }
        return pool
    }

    private func insert(_ number: Int, _ pool: DatabasePool) throws {
        try pool.write { try $0.execute(sql: "INSERT INTO row VALUES (0, ?)", arguments: [number]) }
    }

    private var count: ValueObservation<ValueReducers.Fetch<Int>> {
        ValueObservation.tracking { try Int.fetchOne($0, sql: "SELECT count(*) FROM row") ?? 0 }
    }

    @Test(arguments: busKinds)
    func `each commit that changes something posts once, and rollbacks, failures and reads don't`(kind: BusKind) throws
    {
        struct Undone: Error {}
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let pool = try makeDatabase(in: folder)
        let center = bus.makeCenter()
        let shared = try NotifyDatabase(pool, name: changed, center: center)
        // A program that was killed before may have committed something.
        #expect(center.statistics.posted == 1)
        for number in 0..<10 {
            try insert(number, pool)
            _ = try? pool.write { database in
                try database.execute(sql: "INSERT INTO row VALUES (1, ?)", arguments: [number])
                throw Undone()
            }
            // Fails after its first row, outside of a transaction.
            _ = try? pool.writeWithoutTransaction { database in
                try database.execute(sql: "INSERT INTO row VALUES (2, ?), (0, ?)", arguments: [number, number])
            }
            _ = try pool.write { try Int.fetchOne($0, sql: "SELECT count(*) FROM row") }
            _ = try pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM row") }
            try pool.write { try $0.execute(sql: "UPDATE row SET number = 0 WHERE who = 7") }
            try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        }
        #expect(center.statistics.posted == 11)
        try pool.write { try $0.execute(sql: "DELETE FROM row") }
        #expect(center.statistics.posted == 12)
        withExtendedLifetime(shared) {}
    }

    @Test(arguments: busKinds)
    func `a commit refreshes the observations of another process, whose own commits come back to nobody`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        // Two pools for a file hear no more of each other than two processes do.
        let (one, two) = (try makeDatabase(in: folder), try makeDatabase(in: folder))
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        let shared = [
            try NotifyDatabase(one, name: changed, center: center),
            try NotifyDatabase(two, name: changed, center: other),
        ]
        let running = shared.map { database in Task { try await database.run() } }
        defer { running.forEach { $0.cancel() } }
        let (seenByOne, seenByTwo) = (Recorder<Int>(), Recorder<Int>())
        let observing = [(one, seenByOne), (two, seenByTwo)].map { [count] pool, seen in
            Task { for try await number in count.values(in: pool) { seen.append(number) } }
        }
        defer { observing.forEach { $0.cancel() } }
        for number in 0..<20 {
            try insert(number, number % 2 == 0 ? one : two)
            for seen in [seenByOne, seenByTwo] { #expect(await eventually { seen.elements.last == number + 1 }) }
        }
        try await center.synchronize()
        try await other.synchronize()
        // Their beginnings and their commits.
        #expect((center.statistics.posted, other.statistics.posted) == (11, 11))
    }

    @Test(arguments: busKinds)
    func `a stopped bus does not keep a writer, and what was committed meanwhile is seen when it goes on`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let (one, two) = (try makeDatabase(in: folder), try makeDatabase(in: folder))
        let shared = [
            try NotifyDatabase(one, name: changed, center: bus.makeCenter()),
            try NotifyDatabase(two, name: changed, center: bus.makeCenter()),
        ]
        let running = Task { try await shared[1].run() }
        defer { running.cancel() }
        let seen = Recorder<Int>()
        let observing = Task { [count] in for try await number in count.values(in: two) { seen.append(number) } }
        defer { observing.cancel() }
        try insert(0, one)
        #expect(await eventually { seen.elements.last == 1 })
        bus.stop()
        // Commits that waited for the bus would take ten seconds each.
        let deadline = ContinuousClock.now + .patience
        for number in 1...5_000 {
            try #require(ContinuousClock.now < deadline)
            try insert(number, one)
        }
        bus.resume()
        #expect(await eventually { seen.elements.last == 5_001 })
    }

    @Test(arguments: busKinds)
    func `as a service it ends with the graceful shutdown, and a bus that is back refreshes`(kind: BusKind) async throws
    {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let (one, two) = (try makeDatabase(in: folder), try makeDatabase(in: folder))
        let shared = try NotifyDatabase(one, name: changed, center: bus.makeCenter())
        let group = ServiceGroup(
            configuration: .init(services: [.init(service: shared)], logger: Logger(label: "test"))
        )
        async let running: Void = group.run()
        let seen = Recorder<Int>()
        let observing = Task { [count] in for try await number in count.values(in: one) { seen.append(number) } }
        defer { observing.cancel() }
        // Of what is committed from now on it knows only by the service.
        #expect(await eventually { seen.elements.last == 0 })
        let other = bus.makeCenter()
        try insert(0, two)
        #expect(
            try await eventually {
                try other.post(changed)
                return seen.elements.last == 1
            }
        )
        bus.kill()
        try insert(1, two)
        try bus.restart()
        #expect(await eventually { seen.elements.last == 2 })
        await group.triggerGracefulShutdown()
        try await running
    }

    /// Has every transaction fail.
    private final class Obstacle: TransactionObserver {
        struct Met: Error {}
        func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseWillCommit() throws { throw Met() }
        func databaseDidCommit(_ database: Database) {}
        func databaseDidRollback(_ database: Database) {}
    }

    @Test(arguments: busKinds)
    func `an error of the database ends each run that waits for the same look at it`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let pool = try makeDatabase(in: folder)
        let (center, other) = (bus.makeCenter(), bus.makeCenter())
        let shared = try NotifyDatabase(pool, name: changed, center: center)
        let ends = Recorder<String>()
        let running = (0..<2).map { _ in
            Task {
                do {
                    try await shared.run()
                    ends.append("ended")
                } catch {
                    ends.append("\(type(of: error))")
                }
            }
        }
        defer { running.forEach { $0.cancel() } }
        let counts = Recorder<Int>()
        let end = try await center.addObserver(for: "com.example.end") { _ in
            counts.append(center.statistics.delivered)
        }
        defer { end.cancel() }
        /// Posts once, and returns how many runs were told by then.
        func post() async throws -> Int {
            let number = counts.count
            try other.post("com.example.end")
            try other.post(changed)
            try other.post("com.example.end")
            #expect(await eventually { counts.count == number + 2 })
            return counts.elements[number + 1] - counts.elements[number] - 1
        }
        #expect(try await eventually { try await post() == 2 })
        let (busy, free) = (Counter(), Counter())
        pool.asyncWriteWithoutTransaction { database in
            database.add(transactionObserver: Obstacle(), extent: .databaseLifetime)
            busy.add()
            _ = free.wait(for: 1)
        }
        #expect(await eventually { busy.value == 1 })
        #expect(try await post() == 2)
        free.add()
        #expect(await eventually { ends.count == 2 })
        #expect(ends.elements == ["Met", "Met"])
    }

    /// 100,000 commits of each with `NOTIFYBUS_LONG=1`.
    @Test(arguments: busKinds)
    func `of two processes that write and are killed no commit stays unseen, and none is invented`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let pool = try makeDatabase(in: folder)
        let (commits, kills) = isLongRun ? (100_000, 40) : (1_500, 6)
        let observer = bus.makeCenter()
        let shared = try NotifyDatabase(pool, name: changed, center: observer)
        let running = Task { try await shared.run() }
        defer { running.cancel() }
        let seen = Recorder<Int>()
        let observing = Task { [count] in for try await number in count.values(in: pool) { seen.append(number) } }
        defer { observing.cancel() }

        func begin(_ who: Int) throws -> RunningCommand {
            let arguments = [bus.address, folder.path + "/rows.sqlite", "\(who)", "\(commits)", "\(2 * commits)"]
            return try start(try productPath("database-writer"), arguments)
        }
        var writers = [try begin(0), try begin(1)]
        var random = SeededGenerator(seed: 1)
        for kill in 0..<kills {
            let rows = (seen.elements.last ?? 0) + Int.random(in: 1...max(1, commits / kills), using: &random)
            #expect(await eventually { (seen.elements.last ?? 0) >= min(rows, 2 * commits) })
            writers[kill % 2].send(signal: SIGKILL)
            _ = try writers[kill % 2].wait()
            writers[kill % 2] = try begin(kill % 2)
        }
        for writer in writers {
            let result = try writer.wait(timeout: .seconds(isLongRun ? 1_200 : 120))
            #expect(result.status == 0, "\(result.errorOutput)")
            #expect(result.output == "has seen all\n")
        }
        // The last commit of all is seen here, too, without another.
        #expect(await eventually { seen.elements.last == 2 * commits })
        #expect(seen.elements == seen.elements.sorted())
        let rows = try await pool.read { database in
            try Row.fetchAll(database, sql: "SELECT who, count(*), min(number) FROM row GROUP BY who")
                .map { [$0[0], $0[1], $0[2]] as [Int] }
        }
        #expect(rows == [[0, commits, 0], [1, commits, 0]])
    }

    /// As when a backup is restored. Programs that have the old file open go on reading it.
    @Test(arguments: busKinds)
    func `when the file is replaced, all who open it again see the new rows, and the others none of them`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let old = try makeDatabase(in: folder)
        let keeping = try NotifyDatabase(old, name: changed, center: bus.makeCenter())
        let running = Task { try await keeping.run() }
        defer { running.cancel() }
        let seenInOld = Recorder<Int>()
        let observingOld = Task { [count] in for try await number in count.values(in: old) { seenInOld.append(number) }
        }
        defer { observingOld.cancel() }
        try insert(0, old)
        #expect(await eventually { seenInOld.elements.last == 1 })

        for round in 1...3 {
            let made = try TemporaryFolder()
            do {
                let pool = try makeDatabase(in: made)
                for number in 0..<(10 * round) { try insert(number, pool) }
                _ = try await pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
                try pool.close()
            }
            for end in ["-wal", "-shm"] { unlink("\(folder.path)/rows.sqlite\(end)") }
            #expect(rename("\(made.path)/rows.sqlite", "\(folder.path)/rows.sqlite") == 0)

            let (one, two) = (try makeDatabase(in: folder), try makeDatabase(in: folder))
            let writing = try NotifyDatabase(one, name: changed, center: bus.makeCenter())
            let reading = try NotifyDatabase(two, name: changed, center: bus.makeCenter())
            let refreshing = Task { try await reading.run() }
            defer { refreshing.cancel() }
            let seen = Recorder<Int>()
            let observing = Task { [count] in for try await number in count.values(in: two) { seen.append(number) } }
            defer { observing.cancel() }
            #expect(await eventually { seen.elements.last == 10 * round })
            for number in 1...20 {
                try insert(1_000 + number, one)
                #expect(await eventually { seen.elements.last == 10 * round + number })
            }
            // Commits to the old file are still seen there.
            try insert(round, old)
            #expect(await eventually { seenInOld.elements.last == 1 + round })
            withExtendedLifetime(writing) {}
        }
        #expect(seenInOld.elements == seenInOld.elements.sorted())
    }
}
