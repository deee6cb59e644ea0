// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyEvents

/// Notices when files of `launch.d` are created, changed or removed. See inotify(7).
///
/// It watches each directory or, while that is missing, its nearest existing ancestor, where it looks only for the next
/// directory on the path.
final class LaunchWatch {
    /// How long nothing more may change before it reports that, in milliseconds: an editor writes a file in several
    /// steps.
    private static let calm: Int64 = 200

    private static let goes = UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
    private static let comes = UInt32(IN_CREATE | IN_MOVED_TO)
    private static let changes = UInt32(IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM)

    /// A watched directory, and what may appear in it: nil for any file of `launch.d`.
    private typealias Wanted = Set<[UInt8]>?

    private let loop: EventLoop
    private let paths: [String]
    /// Called when files have changed.
    private let changed: () -> Void
    private var inotify: Int32 = -1
    private var timer: Int?
    private var watched: [Int32: Wanted] = [:]

    init(_ folders: LaunchFolders, on loop: EventLoop, changed: @escaping () -> Void) {
        (self.loop, self.changed) = (loop, changed)
        paths = folders.paths
    }

    deinit {
        guard inotify >= 0 else { return }
        loop.forget(inotify)
        close(inotify)
    }

    /// Watches what exists now.
    func refresh() {
        if inotify < 0 {
            inotify = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
            guard inotify >= 0 else { return }
            loop.watch(inotify) { [weak self] in self?.takeEvents() }
        }
        var found: [Int32: Wanted] = [:]
        for path in paths {
            // Anything created while its parent was about to be watched is seen the next time.
            for _ in 0..<8 where !LaunchWatch.watch(path, by: inotify, &found) {}
        }
        for old in watched.keys where found[old] == nil { inotify_rm_watch(inotify, old) }
        watched = found
    }

    private func takeEvents() {
        guard readsChange() else { return }
        loop.cancel(timer)
        timer = loop.after(LaunchWatch.calm) { [weak self] in self?.changed() }
    }

    /// - Returns: false if a directory has appeared in the meantime that should be watched instead.
    private static func watch(_ path: String, by inotify: Int32, _ found: inout [Int32: Wanted]) -> Bool {
        var place = Substring(path)
        var next = Substring()
        while true {
            // Other paths may lead to the same directory, so the requests for it add up.
            let mask = goes | comes | (next.isEmpty ? changes : 0) | UInt32(IN_MASK_ADD)
            let number = inotify_add_watch(inotify, place.isEmpty ? "/" : String(place), mask)
            if number >= 0 {
                guard !next.isEmpty else {
                    found[number] = .some(nil)
                    return true
                }
                found[number, default: []]?.insert(Array(next.utf8))
                return access("\(place)/\(next)", F_OK) != 0
            }
            guard !place.isEmpty, errno == ENOENT || errno == ENOTDIR, let slash = place.lastIndex(of: "/") else {
                return true
            }
            next = place[place.index(after: slash)...]
            place = place[..<slash]
        }
    }

    /// - Returns: whether something has happened to an entry, or to a directory on the path to one.
    private func readsChange() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
            var isChange = false
            while true {
                let count = read(inotify, buffer.baseAddress, buffer.count)
                guard count > 0 else { return isChange }
                var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                let size = MemoryLayout<inotify_event>.size
                while rest.count >= size {
                    let event = rest.loadUnaligned(as: inotify_event.self)
                    let end = min(rest.count, size + Int(event.len))
                    let name = rest[size..<end].prefix { $0 != 0 }
                    isChange = concerns(event, Array(name)) || isChange
                    rest = UnsafeRawBufferPointer(rebasing: rest[end...])
                }
            }
        }
    }

    private func concerns(_ event: inotify_event, _ name: [UInt8]) -> Bool {
        // The kernel has dropped some, or a directory has gone, after which its number is reported.
        if event.wd < 0 || event.mask & LaunchWatch.goes != 0 { return true }
        guard let wanted = watched[event.wd] else { return false }
        return wanted?.contains(name) ?? name.reversed().starts(with: LaunchFolders.suffix.utf8.reversed())
    }
}
