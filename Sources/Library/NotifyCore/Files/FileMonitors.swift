// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames

/// Monitored files and directories: each creation, removal and write is reported once.
///
/// The directories on the path are watched, so that the file and its directories may be created later, and it may be
/// replaced by rename(2). A symbolic link on the path is watched and followed. The file itself is watched as well, since it
/// may have other names; and the mounts are, since something may be mounted on the path.
///
/// A value without a lock or a thread: its owner waits for `descriptor`, `mountDescriptor` and `deadline`, and then
/// takes the changes.
package struct FileMonitors {
    /// What has become of a file.
    package enum Change: Equatable {
        case changed(Int)
        /// It can't be watched, for this reason, or with nil can be again.
        case obstructed(Int, String?)
    }

    private struct Entry {
        /// Absolute. It may contain symbolic links, and need not exist.
        let path: String
        /// Whether a change of the attributes of what is in a monitored directory counts.
        let heedsAttributes: Bool
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

        var deadline: MonotonicTime? {
            MonotonicTime.earlier(written, MonotonicTime.earlier(owed, retry.time))
        }

        mutating func watchHasEnded(_ watch: Int32) { watches = watches.map { $0 == watch ? -1 : $0 } }
    }

    /// What comes of events that are read together.
    private struct Batch {
        var changes: [Change] = []
        /// Whose path is to be looked along once more, and whether what is found is a change that was told already. That
        /// takes much longer than an event: in a storm it is done once for some hundred of them.
        var looks: [Int: Bool] = [:]

        mutating func look(_ id: Int, isTold: Bool) { looks[id] = isTold || looks[id] ?? false }
    }

    /// How long to wait for the writer to close the file, in milliseconds: a program that opens a file to rewrite it
    /// empties it first, and that must not count as a write of its own. And the shortest time between two changes that
    /// are told.
    static let timeLimit: Int64 = 50
    /// The shortest time between two looks along all paths because something was mounted, in milliseconds.
    private static let mountPause: Int64 = 250

    private let inotify: Inotify
    private let mounts = MountTable()
    /// When to look along all paths since something was mounted or unmounted.
    private var mountLook: MonotonicTime?
    private var nextMountLook = MonotonicTime(nanoseconds: .min)
    private var entries: [Int: Entry] = [:]
    /// The files whose steps use a watch: one watch for each directory, whatever its path.
    private var users: [Int32: Set<Int>] = [:]

    /// - Throws: `failed` if no inotify instance is available.
    package init() throws(NotifyBusError) { inotify = try Inotify() }

    /// Readable when something has happened.
    package var descriptor: Int32 { inotify.descriptor }

    /// Has `POLLPRI` once something was mounted or unmounted, for `mountsHaveChanged`; nil if that can't be known.
    package var mountDescriptor: Int32? { mounts?.descriptor }

    package mutating func mountsHaveChanged() { mountLook = mountLook ?? max(.now, nextMountLook) }

    /// Whether the program has not closed the descriptors.
    package var isOurs: Bool { inotify.isOurs && mounts?.isOurs != false }

    package var isEmpty: Bool { entries.isEmpty }

    /// When to call `takeChanges` although nothing is readable.
    package var deadline: MonotonicTime? {
        var first = mountLook
        for entry in entries.values { first = MonotonicTime.earlier(first, entry.deadline) }
        return first
    }

    /// Monitors a file under a number of the caller's.
    ///
    /// - Returns: what prevents it from being watched, if anything. It is retried, unless the path does not name a file.
    package mutating func add(_ id: Int, path: String, heedsAttributes: Bool = false) -> String? {
        let last = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? [][...]
        guard !last.isEmpty, !last.elementsEqual(".".utf8), !last.elementsEqual("..".utf8),
            let path = FileMonitors.absolute(path)
        else { return "'\(path)' does not name a file" }
        entries[id] = Entry(path: path, heedsAttributes: heedsAttributes, trail: PathTrail(following: path))
        watch(id)
        return entries[id]?.obstacle
    }

    private static func absolute(_ path: String) -> String? {
        if path.utf8.first == UInt8(ascii: "/") { return path }
        guard let folder = getcwd(nil, 0) else { return nil }
        defer { free(folder) }
        return String(cString: folder) + "/" + path
    }

    package mutating func remove(_ id: Int) {
        if let entry = entries.removeValue(forKey: id) { leave(entry.watches, id) }
    }

    /// Reads some of what has happened. If there is more, the descriptor is still readable: in a storm of changes the first
    /// is told before the last has happened.
    package mutating func takeChanges() -> [Change] {
        var batch = Batch()
        for event in inotify.read() { note(event, &batch) }
        if let time = mountLook, time <= .now {
            (mountLook, nextMountLook) = (nil, .now + FileMonitors.mountPause)
            for id in entries.keys { batch.look(id, isTold: false) }
        }
        for (id, isTold) in batch.looks { lookAgain(id, isTold: isTold, &batch.changes) }
        // Last, since what has been read may say that a file was closed in time.
        takeOverdue(&batch.changes)
        return batch.changes
    }

    // MARK: - Watches

    /// Watches each step of a file's trail, and checks again until nothing has changed in the meantime.
    private mutating func watch(_ id: Int) {
        guard var entry = entries[id] else { return }
        let before = entry.watches
        for _ in 0..<8 {
            entry.obstacle = entry.trail.obstacle
            entry.watches = entry.trail.steps.map { step in
                let watch = inotify.add(step.folder, FileMonitors.kinds(step.role, entry.heedsAttributes))
                // A file that may not be read is watched by its directory only.
                let isDispensable = step.role == .passage || step.role == .itself && errno == EACCES
                if watch < 0, !isDispensable, entry.obstacle == nil, errno != ENOENT, errno != ENOTDIR {
                    entry.obstacle = FileMonitors.reason(errno, step.folder)
                }
                return watch
            }
            let trail = PathTrail(following: entry.path)
            if trail == entry.trail { break }
            // Anything that existed in between counts as it is found in the end.
            entry.trail = trail
        }
        for watch in entry.watches where watch >= 0 { users[watch, default: []].insert(id) }
        leave(before.filter { !entry.watches.contains($0) }, id)
        if entry.obstacle == nil {
            entry.retry.reset()
        } else if entry.retry.time == nil {
            entry.retry.schedule()
        }
        entries[id] = entry
    }

    private mutating func leave(_ watches: some Sequence<Int32>, _ id: Int) {
        for watch in watches where watch >= 0 {
            users[watch]?.remove(id)
            guard users[watch]?.isEmpty == true else { continue }
            users[watch] = nil
            inotify.remove(watch)
        }
    }

    /// Of a watched directory itself.
    private static let own = IN_MOVE_SELF | IN_DELETE_SELF

    private static func kinds(_ role: PathTrail.Role, _ heedsAttributes: Bool) -> Int32 {
        let own = FileMonitors.own | IN_ONLYDIR | IN_MASK_ADD
        let entries = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO
        let writes = IN_MODIFY | IN_CLOSE_WRITE
        return switch role {
        case .passage: own
        case .entry: own | entries
        case .file: own | entries | writes
        case .itself: FileMonitors.own | writes | IN_MASK_ADD
        case .contents: own | entries | writes | (heedsAttributes ? IN_ATTRIB : 0)
        }
    }

    private static func reason(_ code: Int32, _ folder: String) -> String {
        code == ENOSPC
            ? "there are no more inotify watches; see fs.inotify.max_user_watches"
            : "\(folder) can't be watched: \(describe(errno: code))"
    }

    // MARK: - Changes

    private mutating func note(_ event: Inotify.Event, _ batch: inout Batch) {
        if event.isOverflow {
            for id in entries.keys {
                tell(id, &batch.changes)
                batch.look(id, isTold: true)
            }
            return
        }
        let ids = users[event.watch] ?? []
        if event.isAny(of: IN_IGNORED) {
            // The kernel has removed it.
            users[event.watch] = nil
            for id in ids { entries[id]?.watchHasEnded(event.watch) }
        }
        for id in ids { note(event, id, &batch) }
    }

    private mutating func note(_ event: Inotify.Event, _ id: Int, _ batch: inout Batch) {
        if event.isAny(of: FileMonitors.own | IN_IGNORED | IN_UNMOUNT) { return batch.look(id, isTold: false) }
        guard let entry = entries[id] else { return }
        for (step, number) in zip(entry.trail.steps, entry.watches) where number == event.watch {
            switch step.role {
            case .entry(event.name) where !event.isAny(of: IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB):
                batch.look(id, isTold: false)
            // Each file in a monitored directory is one of its entries.
            case .file(event.name), .itself, .contents:
                contentHasChanged(id, event, isContent: step.role == .contents, &batch)
            case .passage, .entry, .file: break
            }
        }
    }

    private mutating func contentHasChanged(_ id: Int, _ event: Inotify.Event, isContent: Bool, _ batch: inout Batch) {
        if event.isAny(of: IN_ATTRIB) {
            // The file's own directory may be watched for another one's sake.
            if isContent, entries[id]?.heedsAttributes == true { tell(id, &batch.changes) }
        } else if event.isAny(of: IN_MODIFY) {
            if entries[id]?.written == nil { entries[id]?.written = .now + FileMonitors.timeLimit }
        } else {
            let wasWritten = entries[id]?.written != nil
            entries[id]?.written = nil
            let isClosed = event.isAny(of: IN_CLOSE_WRITE)
            if wasWritten || !isClosed { tell(id, &batch.changes) }
            if !isClosed { batch.look(id, isTold: true) }
        }
    }

    /// Something on the path has changed. It is a change if the path now leads elsewhere, or to something where nothing
    /// was, or vice versa.
    ///
    /// - Parameter isTold: whether what is found is a change that was already reported.
    private mutating func lookAgain(_ id: Int, isTold: Bool, _ changes: inout [Change]) {
        guard let entry = entries[id] else { return }
        entries[id]?.trail = PathTrail(following: entry.path)
        watch(id)
        guard let now = entries[id] else { return }
        if now.trail.finding != entry.trail.finding, !isTold { tell(id, &changes) }
        if now.obstacle != entry.obstacle { changes.append(.obstructed(id, now.obstacle)) }
    }

    private mutating func tell(_ id: Int, _ changes: inout [Change]) {
        guard let entry = entries[id] else { return }
        let now = MonotonicTime.now
        if now < entry.quietUntil {
            entries[id]?.owed = entry.quietUntil
        } else {
            entries[id]?.quietUntil = now + FileMonitors.timeLimit
            entries[id]?.owed = nil
            changes.append(.changed(id))
        }
    }

    private mutating func takeOverdue(_ changes: inout [Change]) {
        let now = MonotonicTime.now
        for (id, entry) in entries {
            if let time = entry.written, time <= now {
                entries[id]?.written = nil
                tell(id, &changes)
            }
            if let time = entry.owed, time <= now { tell(id, &changes) }
            if let time = entry.retry.time, time <= now {
                entries[id]?.retry.cancel()
                lookAgain(id, isTold: false, &changes)
            }
        }
    }
}
