// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A monitored file or directory.
package final class MonitoredFile: Sendable {
    /// Absolute. It may contain symbolic links, and need not exist.
    package let path: String
    fileprivate let changed: @Sendable () -> Void
    fileprivate let obstructed: @Sendable (String?) -> Void

    /// - Parameters:
    ///   - changed: called by `readChanges`.
    ///   - obstructed: called with the reason when the file can't be watched, and with nil when it can again.
    /// - Returns: nil if the path does not name a file.
    package init?(
        path: String,
        changed: @escaping @Sendable () -> Void,
        obstructed: @escaping @Sendable (String?) -> Void = { _ in }
    ) {
        let last = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? [][...]
        guard !last.isEmpty, !last.elementsEqual(".".utf8), !last.elementsEqual("..".utf8) else { return nil }
        if path.utf8.first == UInt8(ascii: "/") {
            self.path = path
        } else {
            guard let folder = getcwd(nil, 0) else { return nil }
            defer { free(folder) }
            self.path = String(cString: folder) + "/" + path
        }
        self.changed = changed
        self.obstructed = obstructed
    }
}

/// Monitored files: each creation, removal and write is reported once. See inotify(7).
///
/// The directories on the path are watched, not the file, so that it and its directories may be created later, and it
/// may be replaced by rename(2). A symbolic link on the path is watched and followed.
package final class FileMonitors: Sendable {
    struct Entry {
        let file: MonitoredFile
        var trail: PathTrail
        /// The numbers of the watches, one for each step; -1 for a step that can't be watched.
        var watches: [Int32] = []
        /// When to report a write at the latest: it is reported as soon as the writer closes the file.
        var written: MonotonicTime?
        /// When to report a change that came too soon after the previous one.
        var owed: MonotonicTime?
        var quietUntil = MonotonicTime(nanoseconds: .min)
        var obstacle: String?
        var retry = BackOff(first: 250, last: 30_000)
        var retryTime: MonotonicTime?

        var deadline: MonotonicTime? {
            MonotonicTime.earlier(written, MonotonicTime.earlier(owed, retryTime))
        }
    }

    struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        /// The steps that use a watch: one watch for each directory, whatever its path.
        var users: [Int32: Set<ObjectIdentifier>] = [:]
    }

    /// The callbacks to run once the lock is released.
    enum News {
        case changed(MonitoredFile)
        case obstructed(MonitoredFile, String?)
    }

    /// What comes of events that are read together.
    private struct Batch {
        var news: [News] = []
        /// Whose path is to be looked along once more, and whether what is found is a change that was told already. That
        /// takes much longer than an event: in a storm it is done once for some hundred of them.
        var looks: [ObjectIdentifier: Bool] = [:]

        mutating func look(_ id: ObjectIdentifier, isTold: Bool) { looks[id] = isTold || looks[id] ?? false }
    }

    /// How many bytes of events are read at once: about 500 events.
    private static let batchSize = 16_384

    /// How long to wait for the writer to close the file, in milliseconds: who opens a file to rewrite it empties it
    /// first, and that must not count as a write of its own. And the shortest time between two changes that are told.
    static let timeLimit: Int64 = 50

    package let descriptor: Int32
    private let state = Monitor(State())

    /// - Throws: `failed` if no inotify instance is available.
    package init() throws(NotifyBusError) {
        descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        if descriptor < 0 { throw .outOfDescriptors("an inotify instance", errno) }
    }

    deinit { close(descriptor) }

    package var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    /// When to call `readChanges` although nothing is readable.
    package var deadline: MonotonicTime? {
        state.withLock { state in
            var first: MonotonicTime?
            for entry in state.entries.values { first = MonotonicTime.earlier(first, entry.deadline) }
            return first
        }
    }

    /// - Returns: what prevents it from being watched, if anything; it is retried.
    @discardableResult
    package func add(_ file: MonitoredFile) -> String? {
        state.withLock { state in
            let id = ObjectIdentifier(file)
            state.entries[id] = Entry(file: file, trail: PathTrail(following: file.path))
            watch(id, &state)
            return state.entries[id]?.obstacle
        }
    }

    package func remove(_ file: MonitoredFile) {
        state.withLock { state in
            guard let entry = state.entries.removeValue(forKey: ObjectIdentifier(file)) else { return }
            leave(entry.watches, ObjectIdentifier(file), &state)
        }
    }

    /// Reads some of what has happened, and tells of each change. If more can be read, the descriptor is still readable:
    /// in a storm of changes the first is told before the last has happened.
    package func readChanges() {
        let news = state.withLock { state in
            var batch = Batch()
            withUnsafeTemporaryAllocation(byteCount: FileMonitors.batchSize, alignment: 8) { buffer in
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                if count > 0 { note(UnsafeRawBufferPointer(rebasing: buffer[..<count]), &state, &batch) }
            }
            for (id, isTold) in batch.looks { lookAgain(id, isTold: isTold, &state, &batch.news) }
            // Last, since what has been read may say that a file was closed in time.
            takeOverdue(&state, &batch.news)
            return batch.news
        }
        for piece in news {
            switch piece {
            case .changed(let file): file.changed()
            case .obstructed(let file, let reason): file.obstructed(reason)
            }
        }
    }

    // MARK: - Watches

    /// Watches each step of a file's trail, and checks again until nothing has changed in the meantime.
    private func watch(_ id: ObjectIdentifier, _ state: inout State) {
        guard var entry = state.entries[id] else { return }
        let before = entry.watches
        for _ in 0..<8 {
            entry.obstacle = entry.trail.obstacle
            entry.watches = entry.trail.steps.map { step in
                let watch = inotify_add_watch(descriptor, step.folder, FileMonitors.mask(step.role))
                if watch < 0, step.role != .passage, entry.obstacle == nil, errno != ENOENT, errno != ENOTDIR {
                    entry.obstacle = FileMonitors.reason(errno, step.folder)
                }
                return watch
            }
            let trail = PathTrail(following: entry.file.path)
            if trail == entry.trail { break }
            // What existed in between counts as it is found in the end.
            entry.trail = trail
        }
        for watch in entry.watches where watch >= 0 { state.users[watch, default: []].insert(id) }
        leave(before.filter { !entry.watches.contains($0) }, id, &state)
        if entry.obstacle == nil {
            entry.retry.reset()
            entry.retryTime = nil
        } else if entry.retryTime == nil {
            entry.retryTime = .now + entry.retry.next()
        }
        state.entries[id] = entry
    }

    private func leave(_ watches: some Sequence<Int32>, _ id: ObjectIdentifier, _ state: inout State) {
        for watch in watches where watch >= 0 {
            state.users[watch]?.remove(id)
            guard state.users[watch]?.isEmpty == true else { continue }
            state.users[watch] = nil
            inotify_rm_watch(descriptor, watch)
        }
    }

    private static func mask(_ role: PathTrail.Role) -> UInt32 {
        let own = IN_ONLYDIR | IN_MASK_ADD | IN_MOVE_SELF | IN_DELETE_SELF
        let entries = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO
        let writes = IN_MODIFY | IN_CLOSE_WRITE
        return switch role {
        case .passage: UInt32(own)
        case .entry: UInt32(own | entries)
        case .file, .contents: UInt32(own | entries | writes)
        }
    }

    private static func reason(_ code: Int32, _ folder: String) -> String {
        code == ENOSPC
            ? "there are no more inotify watches; see fs.inotify.max_user_watches"
            : "\(folder) can't be watched: \(describe(errno: code))"
    }

    // MARK: - Changes

    /// Of inotify_event: watch, mask, cookie, length of the name.
    private static let headerSize = 16

    private func note(_ buffer: UnsafeRawBufferPointer, _ state: inout State, _ batch: inout Batch) {
        var offset = 0
        while offset + FileMonitors.headerSize <= buffer.count {
            let watch = buffer.load(fromByteOffset: offset, as: Int32.self)
            let mask = buffer.load(fromByteOffset: offset + 4, as: UInt32.self)
            let length = Int(buffer.load(fromByteOffset: offset + 12, as: UInt32.self))
            let name = Array(buffer[(offset + FileMonitors.headerSize)...].prefix(length).prefix { $0 != 0 })
            offset += FileMonitors.headerSize + length
            if mask & UInt32(IN_Q_OVERFLOW) != 0 {
                for id in state.entries.keys {
                    tell(id, &state, &batch.news)
                    batch.look(id, isTold: true)
                }
                continue
            }
            let users = state.users[watch] ?? []
            if mask & UInt32(IN_IGNORED) != 0 {
                // The kernel has removed it.
                state.users[watch] = nil
                for id in users { state.entries[id]?.watches.indices.forEach { forget(watch, $0, of: id, &state) } }
            }
            for id in users { note(mask, name, watch, id, &state, &batch) }
        }
    }

    private func forget(_ watch: Int32, _ index: Int, of id: ObjectIdentifier, _ state: inout State) {
        if state.entries[id]?.watches[index] == watch { state.entries[id]?.watches[index] = -1 }
    }

    private func note(
        _ mask: UInt32,
        _ name: [UInt8],
        _ watch: Int32,
        _ id: ObjectIdentifier,
        _ state: inout State,
        _ batch: inout Batch
    ) {
        let own = UInt32(IN_MOVE_SELF | IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT)
        if mask & own != 0 { return batch.look(id, isTold: false) }
        guard let entry = state.entries[id] else { return }
        for (step, number) in zip(entry.trail.steps, entry.watches) where number == watch {
            switch step.role {
            case .passage: break
            case .entry(name):
                if mask & UInt32(IN_MODIFY | IN_CLOSE_WRITE) == 0 { batch.look(id, isTold: false) }
            case .file(name), .contents:
                // Each file in a monitored directory is one of its entries.
                if mask & UInt32(IN_MODIFY) != 0 {
                    if state.entries[id]?.written == nil {
                        state.entries[id]?.written = .now + FileMonitors.timeLimit
                    }
                } else {
                    let wasWritten = state.entries[id]?.written != nil
                    state.entries[id]?.written = nil
                    if wasWritten || mask & UInt32(IN_CLOSE_WRITE) == 0 { tell(id, &state, &batch.news) }
                    if mask & UInt32(IN_CLOSE_WRITE) == 0 { batch.look(id, isTold: true) }
                }
            case .entry, .file: break
            }
        }
    }

    /// Something on the path has changed. It is a change if the path now leads elsewhere, or to something where nothing
    /// was, or vice versa.
    ///
    /// - Parameter isTold: whether what is found is a change that was already reported.
    private func lookAgain(
        _ id: ObjectIdentifier,
        isTold: Bool,
        _ state: inout State,
        _ news: inout [News]
    ) {
        guard let entry = state.entries[id] else { return }
        state.entries[id]?.trail = PathTrail(following: entry.file.path)
        watch(id, &state)
        guard let now = state.entries[id] else { return }
        if now.trail.finding != entry.trail.finding, !isTold { tell(id, &state, &news) }
        if now.obstacle != entry.obstacle { news.append(.obstructed(entry.file, now.obstacle)) }
    }

    private func tell(_ id: ObjectIdentifier, _ state: inout State, _ news: inout [News]) {
        guard let entry = state.entries[id] else { return }
        let now = MonotonicTime.now
        if now < entry.quietUntil {
            state.entries[id]?.owed = entry.quietUntil
        } else {
            state.entries[id]?.quietUntil = now + FileMonitors.timeLimit
            state.entries[id]?.owed = nil
            news.append(.changed(entry.file))
        }
    }

    private func takeOverdue(_ state: inout State, _ news: inout [News]) {
        let now = MonotonicTime.now
        for (id, entry) in state.entries {
            if let time = entry.written, time <= now {
                state.entries[id]?.written = nil
                tell(id, &state, &news)
            }
            if let time = entry.owed, time <= now { tell(id, &state, &news) }
            if let time = entry.retryTime, time <= now {
                state.entries[id]?.retryTime = nil
                lookAgain(id, isTold: false, &state, &news)
            }
        }
    }
}
