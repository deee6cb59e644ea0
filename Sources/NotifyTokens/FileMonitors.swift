// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// A file that is monitored for a token.
final class MonitoredFile: Sendable {
    /// Its folder, without symbolic links.
    let folder: String
    let name: String
    let changed: @Sendable () -> Void

    /// - Throws: `invalidFile` if there is no such folder.
    init(path: String, changed: @escaping @Sendable () -> Void) throws(NotifyStatus) {
        let slash = path.lastIndex(of: "/")
        let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        guard !name.isEmpty, name != ".", name != "..", let real = realpath(parent, nil) else { throw .invalidFile }
        defer { free(real) }
        folder = String(cString: real)
        self.changed = changed
    }
}

/// The files that are monitored. See inotify(7).
///
/// Their folders are watched, so that a file may come later, and may be replaced by rename(2).
final class FileMonitors: Sendable {
    private struct Entry {
        let file: MonitoredFile
        /// When to tell of a write at the latest: as soon as the writer closes the file.
        var written: MonotonicTime?
    }

    private struct State {
        /// By the number of the watch: one for each folder, however it is called.
        var entries: [Int32: [Entry]] = [:]
    }

    /// Of inotify_event: watch, mask, cookie, length of the name.
    private static let headerSize = 16
    /// How long to wait for the writer to close the file, in milliseconds. Who opens a file to rewrite it empties it
    /// first, and that must not count as a write of its own.
    private static let patience: Int64 = 50

    let descriptor: Int32
    private let state = Monitor(State())

    init() throws(NotifyStatus) {
        descriptor = linux_inotify()
        if descriptor < 0 { throw .failed }
    }

    deinit { close(descriptor) }

    var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    var deadline: MonotonicTime? {
        state.withLock { state in
            var first: MonotonicTime?
            for entry in state.entries.values.joined() { first = MonotonicTime.earlier(first, entry.written) }
            return first
        }
    }

    func add(_ file: MonitoredFile) throws(NotifyStatus) {
        // With the lock held, so that the watch cannot be taken off between.
        let isWatched = state.withLock { state in
            let watch = linux_inotify_watch(descriptor, file.folder)
            guard watch >= 0 else { return false }
            state.entries[watch, default: []].append(Entry(file: file))
            return true
        }
        if !isWatched { throw .invalidFile }
    }

    func remove(_ file: MonitoredFile) {
        state.withLock { state in
            for (watch, entries) in state.entries {
                let rest = entries.filter { $0.file !== file }
                if rest.count == entries.count { continue }
                state.entries[watch] = rest.isEmpty ? nil : rest
                if rest.isEmpty { linux_inotify_unwatch(descriptor, watch) }
            }
        }
    }

    /// Reads what has happened, and tells of each change.
    func readChanges() {
        var changed = state.withLock { state in FileMonitors.takeOverdue(&state) }
        withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 8) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else { break }
                changed += changes(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        }
        for file in changed { file.changed() }
    }

    private func changes(in buffer: UnsafeRawBufferPointer) -> [MonitoredFile] {
        state.withLock { state in
            var changed: [MonitoredFile] = []
            var offset = 0
            while offset + FileMonitors.headerSize <= buffer.count {
                let watch = buffer.load(fromByteOffset: offset, as: Int32.self)
                let mask = buffer.load(fromByteOffset: offset + 4, as: UInt32.self)
                let length = Int(buffer.load(fromByteOffset: offset + 12, as: UInt32.self))
                let bytes = buffer[(offset + FileMonitors.headerSize)...].prefix(length).prefix { $0 != 0 }
                offset += FileMonitors.headerSize + length
                if mask & UInt32(IN_Q_OVERFLOW) != 0 {
                    changed += state.entries.values.joined().map(\.file)
                } else {
                    FileMonitors.note(mask, in: &state.entries[watch], named: bytes, &changed)
                }
            }
            return changed
        }
    }

    private static func note(
        _ mask: UInt32,
        in entries: inout [Entry]?,
        named bytes: some Sequence<UInt8>,
        _ changed: inout [MonitoredFile]
    ) {
        for index in entries?.indices ?? 0..<0 {
            guard let entry = entries?[index], entry.file.name.utf8.elementsEqual(bytes) else { continue }
            if mask & UInt32(IN_MODIFY) != 0 {
                if entry.written == nil { entries?[index].written = .now + FileMonitors.patience }
                continue
            }
            if entry.written != nil {
                entries?[index].written = nil
                changed.append(entry.file)
            }
            if mask & UInt32(IN_CLOSE_WRITE) == 0 { changed.append(entry.file) }
        }
    }

    private static func takeOverdue(_ state: inout State) -> [MonitoredFile] {
        var overdue: [MonitoredFile] = []
        let now = MonotonicTime.now
        for (watch, entries) in state.entries {
            for (index, entry) in entries.enumerated() {
                guard let time = entry.written, time <= now else { continue }
                overdue.append(entry.file)
                state.entries[watch]?[index].written = nil
            }
        }
        return overdue
    }
}
