// SPDX-License-Identifier: Apache-2.0

import GRDB
import NotifyBus

extension NotifyName {
    static let notesChanged: Self = "com.example.notes.changed"
}

/// Notes that several processes write and show.
struct Notes {
    let database: DatabasePool
    let center: NotifyCenter

    func add(_ text: String) async throws {
        try await database.write { try $0.execute(sql: "INSERT INTO note VALUES (?)", arguments: [text]) }
        try center.post(.notesChanged)
    }

    func show(_ show: ([String]) -> Void) async throws {
        try await center.withNotifications(for: .notesChanged) { changes in
            show(try await all())
            for await _ in changes { show(try await all()) }
        }
    }

    private func all() async throws -> [String] {
        try await database.read { try String.fetchAll($0, sql: "SELECT text FROM note") }
    }
}
