// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator
import NotifyEvents

/// The focus in GNOME, including on Wayland: its window manager writes to the attribute `user.xdg.inactive-since` of an
/// application's cgroup when the application lost the focus, or -1 while it has it.
final class GnomeSource: LifecycleSource {
    private static let attribute = "user.xdg.inactive-since"

    private struct Folder {
        let path: String
        var watch: Int32 = -1
        var processes: [ProcessID: ObservedProcess] = [:]
        /// nil if there is no such attribute.
        var hasFocus: Bool?
    }

    private let reporter: FactReporter
    private let loop: EventLoop
    /// The directory of a process's cgroup.
    private let folder: (Int32) -> String?
    private let inotify = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
    private var folders: [String: Folder] = [:]
    private var pathOfProcess: [ProcessID: String] = [:]
    private var pathOfWatch: [Int32: String] = [:]

    init(
        _ reporter: FactReporter,
        on loop: EventLoop,
        folder: @escaping (Int32) -> String? = ProcessFolder.cgroup
    ) {
        self.reporter = reporter
        self.loop = loop
        self.folder = folder
    }

    deinit { if inotify >= 0 { close(inotify) } }

    /// Why it can't be used on this machine; nil if it can.
    static var obstacle: String? { CgroupMount.unified == nil ? "cgroup version 2 is not mounted" : nil }

    func start() {
        guard inotify >= 0 else { return reporter.report(.off("no inotify instance is available")) }
        loop.watch(inotify) { [weak self] in self?.takeEvents() }
        reporter.report(.off(GnomeSource.silence))
    }

    func stop() {
        reporter.close()
        if inotify >= 0 { loop.forget(inotify) }
    }

    private static let silence =
        "no observer's cgroup has the attribute \(attribute), which GNOME sets for the units of applications"

    // MARK: - Watches

    func observerHasCome(_ process: ObservedProcess) {
        let path = folder(process.pid)
        if pathOfProcess[process.id] != path { remove(process.id) }
        if let path, inotify >= 0 {
            var entry = folders[path] ?? Folder(path: path)
            if entry.watch < 0 {
                entry.watch = inotify_add_watch(inotify, path, UInt32(IN_ATTRIB | IN_ONLYDIR))
                if entry.watch >= 0 { pathOfWatch[entry.watch] = path }
                // After the watch, so that no change is missed in between.
                entry.hasFocus = GnomeSource.hasFocus(path)
            }
            entry.processes[process.id] = process
            folders[path] = entry
            pathOfProcess[process.id] = path
        }
        tell()
    }

    func observerHasGone(_ process: ProcessID) {
        remove(process)
        tell()
    }

    private func remove(_ process: ProcessID) {
        guard let path = pathOfProcess.removeValue(forKey: process) else { return }
        folders[path]?.processes[process] = nil
        guard let entry = folders[path], entry.processes.isEmpty else { return }
        folders[path] = nil
        if entry.watch >= 0 {
            pathOfWatch[entry.watch] = nil
            inotify_rm_watch(inotify, entry.watch)
        }
    }

    // MARK: - Results

    private func takeEvents() {
        var touched: Set<Int32> = []
        var hasLostEvents = false
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 8)
        defer { buffer.deallocate() }
        while true {
            let count = read(inotify, buffer.baseAddress, buffer.count)
            guard count > 0 else { break }
            var offset = 0
            while offset + MemoryLayout<inotify_event>.size <= count {
                let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                touched.insert(event.wd)
                if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { hasLostEvents = true }
                offset += MemoryLayout<inotify_event>.size + Int(event.len)
            }
        }
        for (watch, path) in pathOfWatch where hasLostEvents || touched.contains(watch) {
            folders[path]?.hasFocus = GnomeSource.hasFocus(path)
        }
        tell()
    }

    private func tell() {
        let known = folders.values.filter { $0.hasFocus != nil }
        guard !known.isEmpty else { return reporter.report(.off(GnomeSource.silence)) }
        reporter.report(.live)
        let focused = known.filter { $0.hasFocus == true }.flatMap(\.processes.values).sorted { $0.pid < $1.pid }
        reporter.report(
            .focus(
                focused.map { FocusedProcess(pid: $0.pid, application: $0.application, user: $0.user) },
                among: Set(known.flatMap(\.processes.keys).map(\.pid))
            )
        )
    }

    /// - Returns: nil if the directory has no such attribute.
    private static func hasFocus(_ path: String) -> Bool? {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = linux_getxattr(path, attribute, start, buffer.count)
            guard count > 0 else { return nil }
            return buffer[..<count].prefix { $0 != 0 }.elementsEqual("-1".utf8)
        }
    }
}
