// SPDX-License-Identifier: Apache-2.0

import GRDB
import Glibc
import NotifyBus
import NotifyGRDB
import Synchronization
import TestSupport
import Testing

/// The trait GRDB: another process that reads what this one commits.
@Suite struct DatabaseReaderTests {

    /// A database whose commits are told, and the other processes that read it.
    private struct Sampling {
        let bus: PrivateBus
        private let folder: TemporaryFolder
        private let pool: DatabasePool
        private let commits = CommitClock()
        private let shared: NotifyDatabase

        init(_ kind: BusKind) throws {
            bus = try PrivateBus(kind)
            folder = try TemporaryFolder()
            pool = try DatabasePool(path: folder.path + "/rows.sqlite")
            try pool.write { try $0.execute(sql: "CREATE TABLE sample (number INTEGER PRIMARY KEY)") }
            // First, so that it knows the time before anything is posted.
            pool.add(transactionObserver: commits, extent: .databaseLifetime)
            shared = try NotifyDatabase(pool, name: "com.example.rows.changed", center: bus.makeCenter())
        }

        func startReader(_ count: Int, _ how: String) throws -> RunningCommand {
            let arguments = [bus.address, folder.path + "/rows.sqlite", "\(count)", how]
            let reader = try start(try productPath("database-reader"), arguments)
            try reader.waitForOutput(containing: "ready\n")
            return reader
        }

        /// - Returns: when it was committed.
        @discardableResult
        func insert(_ number: Int) throws -> Int64 {
            try pool.write { try $0.execute(sql: "INSERT INTO sample VALUES (?)", arguments: [number]) }
            return commits.last.load(ordering: .relaxed)
        }
    }

    /// libdispatch looks at its workers each second, on a thread of its own, in every program that has tasks.
    @Test(arguments: busKinds)
    func `a process that waits for commits does not wake up without one, but for libdispatch's clock`(
        kind: BusKind
    ) async throws {
        let sampling = try Sampling(kind)
        let reader = try sampling.startReader(2, "values")
        try sampling.insert(1)
        let isIdle = try await eventually {
            let before = wakeUpsOfThreads(in: reader.pid)
            try await Task.sleep(for: .seconds(2))
            let after = wakeUpsOfThreads(in: reader.pid)
            let awake = after.filter { before[$0.key] != $0.value }
            return awake.count <= 1 && !awake.contains { $0.key.name == "notifybus" }
        }
        #expect(isIdle)
        // It is alive, and sees the next.
        try sampling.insert(2)
        #expect(try reader.wait(timeout: .patience).status == 0)
    }

    /// A measurement, which prints the medians.
    @Test(.enabled(if: isLongRun, "a measurement: NOTIFYBUS_LONG=1"), arguments: busKinds)
    func `a process that is told of a commit reads it sooner than one that looks each millisecond`(
        kind: BusKind
    ) async throws {
        let sampling = try Sampling(kind)
        let ways = ["polls", "values", "changes"]
        var medians: [String: [Int64]] = [:]
        var number = 0
        for how in (0..<5).flatMap({ _ in ways }) {
            let reader = try sampling.startReader(500, how)
            var committed: [Int64: Int64] = [:]
            while let state = processState(reader.pid), state != "Z" {
                number += 1
                committed[Int64(number)] = try sampling.insert(number)
                try await Task.sleep(for: .microseconds(Int.random(in: 3_000...5_000)))
            }
            let delays = try reader.wait().output.split(separator: "\n").compactMap { line -> Int64? in
                let numbers = line.split(separator: " ").compactMap { Int64($0) }
                guard numbers.count == 2, let time = committed[numbers[0]] else { return nil }
                return numbers[1] - time
            }
            try #require(delays.count == 500)
            medians[how, default: []].append(delays.sorted()[delays.count / 2] / 1_000)
        }
        print("\(kind): µs from a commit until it is read:", medians)
        let typical = medians.mapValues { $0.sorted()[2] }
        let polling = try #require(typical["polls"])
        #expect(typical.count == ways.count && typical.values.allSatisfy { $0 <= polling })
    }
}

/// When the last transaction was committed.
private final class CommitClock: TransactionObserver, Sendable {
    /// In nanoseconds of the monotonic clock.
    let last = Atomic<Int64>(0)

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }

    func databaseDidChange(with event: DatabaseEvent) {}

    func databaseDidCommit(_ database: Database) {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        last.store(Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec), ordering: .relaxed)
    }

    func databaseDidRollback(_ database: Database) {}
}
