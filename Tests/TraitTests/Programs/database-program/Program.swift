// SPDX-License-Identifier: Apache-2.0

import GRDB
import NotifyBus
import NotifyGRDB

@main
struct Program {
    static func main() async throws {
        let pool = try DatabasePool(path: CommandLine.arguments[1])
        try await pool.write { try $0.execute(sql: "CREATE TABLE IF NOT EXISTS note (text TEXT)") }
        let shared = try NotifyDatabase(pool, name: "com.example.notes.changed")
        async let refreshing: Void = shared.run()
        // Other processes hear of this commit, and this one of theirs.
        try await pool.write { try $0.execute(sql: "INSERT INTO note VALUES ('hello')") }
        let count = ValueObservation.tracking { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") ?? 0 }
        for try await number in count.values(in: pool) { print("There are \(number) notes") }
        try await refreshing
    }
}
