// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import NotifyBus
import Synchronization

/// Settings that several programs of a user share, as those of an app group do on iOS.
///
/// They are kept in SQLite, in `$XDG_DATA_HOME/SUITE/defaults.sqlite`. SQLite tells no other process that something has
/// changed; the name `SUITE.defaults` does. Each write is a transaction and then one post. An observer looks which rows
/// are newer than those it knows, so it does not matter how many posts were coalesced on the way.
///
/// Any thread may use it.
public final class SharedDefaults: Sendable {
    private let database: DatabaseQueue
    private let center: NotifyCenter
    private let name: NotifyName

    /// Opens the settings of a suite, such as `group.com.example`, and makes them if there are none.
    ///
    /// - Throws: a `DatabaseError` if the file can't be opened, an error of Foundation if its folder can't be made, and a
    ///   `NotifyBusError` if the suite's name can't be part of a notification's name.
    public init(suiteName: String, center: NotifyCenter = .session) throws {
        let environment = ProcessInfo.processInfo.environment
        let data = environment["XDG_DATA_HOME"] ?? NSHomeDirectory() + "/.local/share"
        let folder = "\(data)/\(suiteName)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var configuration = Configuration()
        configuration.journalMode = .wal
        // Another process may be writing.
        configuration.busyMode = .timeout(10)
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

    /// Sets a text, and tells every observer.
    public func set(_ value: String, forKey key: String) throws { try write(value, key) }
    /// Sets an integer, and tells every observer.
    public func set(_ value: Int, forKey key: String) throws { try write(value, key) }
    /// Sets a number, and tells every observer.
    public func set(_ value: Double, forKey key: String) throws { try write(value, key) }
    /// Sets a truth value, and tells every observer.
    public func set(_ value: Bool, forKey key: String) throws { try write(value, key) }
    /// Sets bytes, and tells every observer.
    public func set(_ value: Data, forKey key: String) throws { try write(value, key) }

    /// Its row stays, without a value, so that observers see that it has gone.
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
        // Behind the transaction: an observer finds the row.
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

    /// An observation. It ends when nothing refers to it any more.
    public final class Observation: Sendable {
        private let observation: NotifyCenter.Observation

        init(_ observation: NotifyCenter.Observation) {
            self.observation = observation
        }
    }

    /// Calls back with each key that was changed, by whatever process, from now on.
    ///
    /// A key that was changed several times in a row may be told once: read its value then. Callbacks run on a thread of
    /// the center, one at a time.
    ///
    /// - Parameter key: the key to observe; nil for every key.
    /// - Throws: a `NotifyBusError` if the bus can't be reached, a `DatabaseError` if the settings can't be read.
    public func observe(
        _ key: String? = nil,
        using callback: @escaping @Sendable (String) -> Void
    ) throws -> Observation {
        let known = Version()
        let observation = try center.addObserver(forName: name) { [database] _ in
            for changed in known.advance(in: database) where key == nil || changed == key { callback(changed) }
        }
        // Behind the registration, so that nothing falls in between.
        try known.begin(in: database)
        return Observation(observation)
    }

    /// Up to where an observer knows the settings.
    private final class Version: Sendable {
        private let last = Mutex<Int64?>(nil)

        func begin(in database: DatabaseQueue) throws {
            try last.withLock { last in
                last = try database.read { try Int64.fetchOne($0, sql: "SELECT max(version) FROM defaults") } ?? 0
            }
        }

        /// The keys that have changed since the last time. If they can't be read now, they are the next time.
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
