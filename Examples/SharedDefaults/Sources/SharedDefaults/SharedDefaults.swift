// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import NotifyBus
import Synchronization

/// Settings shared by several programs of a user, like those of an app group on iOS.
///
/// They are stored with SQLite in `$XDG_DATA_HOME/SUITE/defaults.sqlite`. SQLite notifies no other process of a change; a post
/// of the name `SUITE.defaults` does. Each write is a transaction followed by one post. An observer checks which rows are
/// newer than those it knows, so it does not matter how many posts were coalesced on the way.
///
/// Can be used from any thread.
public final class SharedDefaults: Sendable {
    private let database: DatabaseQueue
    private let center: NotifyCenter
    private let name: NotifyName

    /// Opens the settings of a suite, such as `group.com.example`, and creates them if there are none.
    ///
    /// - Throws: a `DatabaseError` if the file can't be opened, a Foundation error if its folder can't be created or locked,
    ///   and a `NotifyBusError` if the suite's name can't be part of a notification's name.
    public init(suiteName: String, center: NotifyCenter = .session) throws {
        let environment = ProcessInfo.processInfo.environment
        let data = environment["XDG_DATA_HOME"] ?? NSHomeDirectory() + "/.local/share"
        let folder = "\(data)/\(suiteName)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var configuration = Configuration()
        configuration.journalMode = .wal
        // Another process may be writing.
        configuration.busyMode = .timeout(60)
        // One process at a time: two that switch a new file to WAL would not wait for each other; one of them would fail.
        let lock = open("\(folder)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(lock) }
        while flock(lock, LOCK_EX) != 0 {
            guard errno == EINTR else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        }
        database = try DatabaseQueue(path: "\(folder)/defaults.sqlite", configuration: configuration)
        self.center = center
        name = try NotifyName("\(suiteName).defaults")
        try database.write { database in
            try database.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS defaults (key TEXT PRIMARY KEY NOT NULL, value, version INTEGER NOT NULL);
                    CREATE INDEX IF NOT EXISTS versions ON defaults (version);
                    """
            )
        }
    }

    // MARK: Writing

    /// Sets a text, and notifies every observer.
    public func set(_ value: String, forKey key: String) throws { try write(value, key) }
    /// Sets an integer, and notifies every observer.
    public func set(_ value: Int, forKey key: String) throws { try write(value, key) }
    /// Sets a number, and notifies every observer.
    public func set(_ value: Double, forKey key: String) throws { try write(value, key) }
    /// Sets a truth value, and notifies every observer.
    public func set(_ value: Bool, forKey key: String) throws { try write(value, key) }
    /// Sets bytes, and notifies every observer.
    public func set(_ value: Data, forKey key: String) throws { try write(value, key) }

    /// Removes a value. Its row stays, without a value, so that observers notice.
    public func removeObject(forKey key: String) throws { try write(nil, key) }

    private func write(_ value: (any DatabaseValueConvertible)?, _ key: String) throws {
        try database.write { database in
            try database.execute(
                sql: """
                    INSERT INTO defaults VALUES (?, ?, (SELECT coalesce(max(version), 0) + 1 FROM defaults))
                    ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version
                    """,
                arguments: [key, value]
            )
        }
        // After the transaction, so that observers find the row.
        try center.post(name)
    }

    // MARK: Reading

    /// The value of a key as text; nil if it has none.
    public func string(forKey key: String) throws -> String? { try read(key, "CAST(value AS TEXT)") }
    /// The integer of a key; 0 if it has none.
    public func integer(forKey key: String) throws -> Int { try read(key) ?? 0 }
    /// The number of a key; 0 if it has none.
    public func double(forKey key: String) throws -> Double { try read(key) ?? 0 }
    /// The truth value of a key; false if it has none.
    public func bool(forKey key: String) throws -> Bool { try read(key) ?? false }
    /// The bytes of a key; nil if it has none.
    public func data(forKey key: String) throws -> Data? { try read(key) }

    private func read<Value: DatabaseValueConvertible>(_ key: String, _ column: String = "value") throws -> Value? {
        let sql = "SELECT \(column) FROM defaults WHERE key = ?"
        return try database.read { try Value.fetchOne($0, sql: sql, arguments: [key]) }
    }

    // MARK: Observing

    /// An observation. It ends when it is released.
    public final class Observation: Sendable {
        private let observation: NotifyCenter.Observation

        init(_ observation: NotifyCenter.Observation) {
            self.observation = observation
        }
    }

    /// Calls back with each key that changes from now on, in whatever process.
    ///
    /// A key that changes several times in a row may be reported once: read its value then. Callbacks run on a thread of
    /// the center, one at a time.
    ///
    /// - Parameter key: the key to observe; nil for every key.
    /// - Throws: a `NotifyBusError` if the bus can't be reached, a `DatabaseError` if the settings can't be read.
    public func observe(
        _ key: String? = nil,
        using callback: @escaping @Sendable (String) -> Void
    ) async throws -> Observation {
        let known = Version()
        let observation = try await center.addObserver(for: name) { [database] _ in
            for changed in known.advance(in: database) where key == nil || changed == key { callback(changed) }
        }
        // After the registration, so that nothing is missed in between.
        try known.begin(in: database)
        return Observation(observation)
    }

    /// The newest change that an observer knows.
    private final class Version: Sendable {
        private let last = Mutex<Int64?>(nil)

        func begin(in database: DatabaseQueue) throws {
            try last.withLock { last in
                last = try database.read { try Int64.fetchOne($0, sql: "SELECT max(version) FROM defaults") } ?? 0
            }
        }

        /// The keys that have changed since the last call. If they can't be read now, the next call returns them.
        func advance(in database: DatabaseQueue) -> [String] {
            last.withLock { last in
                guard let version = last else { return [] }
                let rows = try? database.read { database in
                    try Row.fetchAll(
                        database,
                        sql: "SELECT key, version FROM defaults WHERE version > ? ORDER BY version",
                        arguments: [version]
                    )
                }
                guard let rows, let newest = rows.last else { return [] }
                last = newest["version"]
                return rows.map { $0["key"] }
            }
        }
    }
}
