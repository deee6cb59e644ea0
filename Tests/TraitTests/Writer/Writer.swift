// SPDX-License-Identifier: Apache-2.0

import GRDB
import NotifyBus
import NotifyGRDB

/// database-writer ADDRESS FILE WHO COMMITS TOTAL - one of several processes that write to a database: commits until it has
/// COMMITS rows of its own, with rollbacks, failures, reads and checkpoints in between, and ends when its observation has
/// seen TOTAL rows of all.
@main struct Writer {
    private struct Undone: Error {}

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 6, let who = Int(arguments[3]), let commits = Int(arguments[4]),
            let total = Int(arguments[5])
        else {
            return print("database-writer ADDRESS FILE WHO COMMITS TOTAL")
        }
        let center = NotifyCenter(bus: .address(arguments[1]))
        var configuration = Configuration()
        configuration.busyMode = .timeout(60)
        let pool = try DatabasePool(path: arguments[2], configuration: configuration)
        let shared = try NotifyDatabase(pool, name: "com.example.rows.changed", center: center)
        let refreshing = Task { try await shared.run() }

        let done = try await pool.read { database in
            try Int.fetchOne(database, sql: "SELECT count(*) FROM row WHERE who = ?", arguments: [who]) ?? 0
        }
        for number in done..<commits {
            if number % 10 == 3 { try await changeNothing(pool, who) }
            if number % 500 == 7 { try? await pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) } }
            try await pool.write { database in
                try database.execute(sql: "INSERT INTO row VALUES (?, ?)", arguments: [who, number])
            }
        }
        // One at its beginning.
        let posted = center.statistics.posted
        if posted != commits - done + 1 { print("posted \(posted) times for \(commits - done) commits") }

        let count = ValueObservation.tracking { try Int.fetchOne($0, sql: "SELECT count(*) FROM row") ?? 0 }
        for try await seen in count.values(in: pool) where seen == total {
            print("has seen all")
            break
        }
        try await center.flush()
        refreshing.cancel()
    }

    private static func changeNothing(_ pool: DatabasePool, _ who: Int) async throws {
        try? await pool.write { database in
            try database.execute(sql: "INSERT INTO row VALUES (?, -1)", arguments: [who])
            throw Undone()
        }
        // Fails at its second row, by itself.
        try? await pool.writeWithoutTransaction { database in
            try database.execute(sql: "INSERT INTO row VALUES (?, -2), (?, -2)", arguments: [who, who])
        }
        _ = try await pool.write { try Int.fetchOne($0, sql: "SELECT count(*) FROM row") }
    }
}
