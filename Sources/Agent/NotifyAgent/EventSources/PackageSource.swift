// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames

/// Packages that were installed, removed or upgraded: changes to the databases of dpkg and rpm.
///
/// A package manager writes its database several times in the course of a transaction, and holds a lock on a file all the
/// while. Its changes are posted once, when no process holds the lock any more.
final class PackageSource: Source {
    static let name: NotifyName = "org.notifybus.system.packages"

    struct Database: Sendable {
        let folder: String
        let files: Set<String>
        /// In the same directory.
        let locks: [String]

        init(_ folder: String, files: Set<String>, locks: [String]) {
            (self.folder, self.files, self.locks) = (folder, files, locks)
        }

        static let all = [
            Database("/var/lib/dpkg", files: ["status"], locks: ["lock-frontend", "lock"]),
            rpm("/var/lib/rpm"), rpm("/usr/lib/sysimage/rpm"),
        ]

        private static func rpm(_ folder: String) -> Database {
            Database(
                folder,
                files: ["rpmdb.sqlite", "rpmdb.sqlite-wal", "Packages", "Packages.db"],
                locks: [".rpm.lock"]
            )
        }

        /// Whether a process holds one of its locks. See proc_locks(5).
        var isLocked: Bool {
            let held = SystemFile.text(of: "/proc/locks")?.split(separator: "\n") ?? []
            return locks.contains { name in
                var facts = Glibc.stat()
                guard stat(folder + "/" + name, &facts) == 0 else { return false }
                // "1: POSIX ADVISORY WRITE 4711 08:01:1234 0 EOF"
                let number = ":\(facts.st_ino) "
                return held.contains { $0.contains(number) }
            }
        }
    }

    /// How long nothing must have been written, in milliseconds: between two locks of one transaction there is less.
    private static let pause: Int64 = 500

    private let databases: [Database]
    private weak var driver: SourceDriver?
    private var inotify: LoopInotify.Watches?
    private var watches: [Int32: Int] = [:]
    /// Those that have changed since the last post.
    private var changed: Set<Int> = []
    private var timer: Int?

    init(_ databases: [Database] = Database.all) { self.databases = databases }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        let shared = try SourceFault.rethrowing { () throws(NotifyBusError) in
            try LoopInotify.shared(on: driver.loop)
        }
        let inotify = shared.join { [weak self] events in self?.take(events) }
        for (index, database) in databases.enumerated() {
            let watch = inotify.add(database.folder, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR)
            // Two of them may be the same directory, by a link.
            if watch >= 0, watches[watch] == nil { watches[watch] = index }
        }
        guard !watches.isEmpty else { throw SourceFault("there is no database of dpkg or rpm", isPassing: false) }
        (self.driver, self.inotify) = (driver, inotify)
        driver.isLive()
    }

    func end() {
        driver?.loop.cancel(timer)
        (driver, inotify, watches, changed, timer) = (nil, nil, [:], [], nil)
    }

    private func take(_ events: [Inotify.Event]) {
        for event in events {
            if event.isAny(of: IN_IGNORED), watches[event.watch] != nil { inotify?.hasEnded(event.watch) }
            if event.isOverflow { changed.formUnion(watches.values) }
            guard let index = watches[event.watch] else { continue }
            let name = String(decoding: event.name, as: UTF8.self)
            if databases[index].files.contains(name) { changed.insert(index) }
        }
        let isOwn = events.contains { $0.isOverflow || watches[$0.watch] != nil }
        guard isOwn, !changed.isEmpty else { return }
        driver?.loop.cancel(timer)
        timer = driver?.loop.after(PackageSource.pause) { [weak self] in self?.settle() }
    }

    /// While the lock is held nothing is posted: the process that gives it up closes its file, and that is an event.
    private func settle() {
        timer = nil
        let over = changed.filter { !databases[$0].isLocked }
        guard !over.isEmpty else { return }
        changed.subtract(over)
        driver?.post(PackageSource.name)
    }
}
