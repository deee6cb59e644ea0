// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator
import NotifyCore

/// The focus in GNOME, including on Wayland: its window manager writes to the attribute `user.xdg.inactive-since` of an
/// application's cgroup when the application lost the focus, or -1 while it has it.
final class GnomeSource: Source {
    private static let attribute = "user.xdg.inactive-since"
    private static let silence =
        "no observer's cgroup has the attribute \(attribute), which GNOME sets for the units of applications"

    private struct Folder {
        var watch: Int32 = -1
        var processes: [ProcessID: Newcomer.ProcessFacts] = [:]
        /// nil if there is no such attribute.
        var hasFocus: Bool?
    }

    /// The directory of a process's cgroup.
    private let folder: (Int32) -> String?
    private weak var driver: SourceDriver?
    private var inotify: Inotify?
    private var folders: [String: Folder] = [:]
    private var pathOfProcess: [ProcessID: String] = [:]
    private var pathOfWatch: [Int32: String] = [:]

    init(folder: @escaping (Int32) -> String? = ProcessFolder.cgroup) { self.folder = folder }

    /// Why it can't be used on this machine; nil if it can.
    static var obstacle: String? { CgroupMount.unified == nil ? "cgroup version 2 is not mounted" : nil }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        let inotify: Inotify
        do throws(NotifyBusError) {
            inotify = try Inotify()
        } catch {
            throw SourceFault(error.description)
        }
        (self.driver, self.inotify) = (driver, inotify)
        driver.loop.watch(inotify.descriptor) { [weak self] in self?.takeEvents() }
        for path in folders.keys { watch(path) }
        tell()
    }

    func end() {
        if let inotify { driver?.loop.forget(inotify.descriptor) }
        (driver, inotify, pathOfWatch) = (nil, nil, [:])
        for path in folders.keys { folders[path]?.watch = -1 }
    }

    // MARK: - Observers

    func observerHasCome(_ process: Newcomer.ProcessFacts) {
        let path = folder(process.id.pid)
        if pathOfProcess[process.id] != path { remove(process.id) }
        if let path {
            pathOfProcess[process.id] = path
            folders[path, default: Folder()].processes[process.id] = process
            watch(path)
        }
        tell()
    }

    func observerHasGone(_ process: ProcessID) {
        remove(process)
        tell()
    }

    private func watch(_ path: String) {
        guard let inotify, folders[path]?.watch ?? 0 < 0 else { return }
        let watch = inotify.add(path, IN_ATTRIB | IN_ONLYDIR)
        if watch >= 0 { pathOfWatch[watch] = path }
        folders[path]?.watch = watch
        // After the watch, so that no change is missed in between.
        folders[path]?.hasFocus = GnomeSource.hasFocus(path)
    }

    private func remove(_ process: ProcessID) {
        guard let path = pathOfProcess.removeValue(forKey: process) else { return }
        folders[path]?.processes[process] = nil
        guard let entry = folders[path], entry.processes.isEmpty else { return }
        folders[path] = nil
        if entry.watch >= 0 {
            pathOfWatch[entry.watch] = nil
            inotify?.remove(entry.watch)
        }
    }

    // MARK: - Results

    private func takeEvents() {
        let events = inotify?.read() ?? []
        let touched = Set(events.map(\.watch))
        let hasLostEvents = events.contains(where: \.isOverflow)
        for (watch, path) in pathOfWatch where hasLostEvents || touched.contains(watch) {
            folders[path]?.hasFocus = GnomeSource.hasFocus(path)
        }
        tell()
    }

    private func tell() {
        let known = folders.values.filter { $0.hasFocus != nil }
        guard let driver else { return }
        guard !known.isEmpty else { return driver.isOff(GnomeSource.silence) }
        driver.isLive()
        let focused = known.filter { $0.hasFocus == true }.flatMap(\.processes.values).sorted { $0.id.pid < $1.id.pid }
        driver.report(
            .fact(
                .focus(
                    focused.map { FocusedProcess(pid: $0.id.pid, application: $0.application, user: $0.id.user) },
                    among: Set(known.flatMap(\.processes.keys).map(\.pid))
                )
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
