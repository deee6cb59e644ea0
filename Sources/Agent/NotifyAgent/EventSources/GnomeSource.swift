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

    /// Units beyond that are not watched.
    private static let maximumUnits = 1_024

    private struct Folder {
        var watch: Int32 = -1
        /// Whether it is one of the desktop's units, even if no observer is in it.
        var isUnit = false
        var processes: [ProcessID: Newcomer.ProcessFacts] = [:]
        /// nil if there is no such attribute.
        var hasFocus: Bool?
    }

    /// The slice with the units of all applications; nil if only those of observers are watched.
    private let units: String?
    /// The slices that are watched for units that come and go.
    private var slices: [Int32: String] = [:]
    /// The directory of a process's cgroup.
    private let folder: (Int32) -> String?
    private weak var driver: SourceDriver?
    private var inotify: LoopInotify.Watches?
    private var folders: [String: Folder] = [:]
    private var pathOfProcess: [ProcessID: String] = [:]
    private var pathOfWatch: [Int32: String] = [:]

    init(units: String? = nil, folder: @escaping (Int32) -> String? = ProcessFolder.cgroup) {
        (self.units, self.folder) = (units, folder)
    }

    /// The slice of the user's applications, if the desktop is GNOME: elsewhere nothing writes the attribute.
    static func units(_ environment: [String: String]) -> String? {
        let desktops = (environment["XDG_CURRENT_DESKTOP"] ?? "").split(separator: ":")
        guard desktops.contains("GNOME"), let own = ProcessFolder(of: ProcessHandle.own)?.unifiedCgroup else {
            return nil
        }
        let parts = own.split(separator: "/")
        guard let manager = parts.firstIndex(where: { $0 == "user@\(geteuid()).service" }) else { return nil }
        return CgroupMount.folder(of: "/" + parts[...manager].joined(separator: "/") + "/app.slice")
    }

    /// Why it can't be used on this machine; nil if it can.
    static var obstacle: String? { CgroupMount.unified == nil ? "cgroup version 2 is not mounted" : nil }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        let shared = try SourceFault.rethrowing { () throws(NotifyBusError) in
            try LoopInotify.shared(on: driver.loop)
        }
        self.driver = driver
        inotify = shared.join { [weak self] events in self?.take(events) }
        for path in folders.keys { watch(path) }
        if let units { watch(slice: units) }
        tell()
    }

    func end() {
        (driver, inotify, pathOfWatch, slices) = (nil, nil, [:], [:])
        folders = folders.filter { !$0.value.processes.isEmpty }
        for path in folders.keys {
            folders[path]?.watch = -1
            folders[path]?.isUnit = false
        }
    }

    // MARK: - Units

    /// Watches the units in a slice, and the slices in it.
    private func watch(slice path: String, depth: Int = 3) {
        guard let inotify, depth > 0 else { return }
        let watch = inotify.add(path, IN_CREATE | IN_DELETE | IN_ONLYDIR)
        guard watch >= 0 else { return }
        slices[watch] = path
        for entry in SystemFile.entries(of: path) ?? [] where entry.isFolder {
            enter(entry.name, in: path, depth: depth)
        }
    }

    private func enter(_ name: String, in slice: String, depth: Int = 2) {
        let path = slice + "/" + name
        if name.hasSuffix(".slice") { return watch(slice: path, depth: depth - 1) }
        guard name.hasSuffix(".scope") || name.hasSuffix(".service"), folders.count < GnomeSource.maximumUnits else {
            return
        }
        folders[path, default: Folder()].isUnit = true
        watch(path)
    }

    private func leave(_ path: String) {
        folders[path]?.isUnit = false
        forgetIfUnused(path)
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
        forgetIfUnused(path)
    }

    private func forgetIfUnused(_ path: String) {
        guard let entry = folders[path], entry.processes.isEmpty, !entry.isUnit else { return }
        folders[path] = nil
        if entry.watch >= 0 {
            pathOfWatch[entry.watch] = nil
            inotify?.remove(entry.watch)
        }
    }

    // MARK: - Results

    private func take(_ events: [Inotify.Event]) {
        let isOwn = { (event: Inotify.Event) in
            event.isOverflow || self.slices[event.watch] != nil || self.pathOfWatch[event.watch] != nil
        }
        guard events.contains(where: isOwn) else { return }
        for event in events {
            if event.isAny(of: IN_IGNORED) { inotify?.hasEnded(event.watch) }
            guard let slice = slices[event.watch] else { continue }
            let name = String(decoding: event.name, as: UTF8.self)
            if event.isAny(of: IN_CREATE) { enter(name, in: slice) }
            if event.isAny(of: IN_IGNORED) { slices[event.watch] = nil }
            if event.isAny(of: IN_DELETE) { leave(slice + "/" + name) }
        }
        let touched = Set(events.map(\.watch))
        let hasLostEvents = events.contains(where: \.isOverflow)
        if hasLostEvents, let units {
            for (path, folder) in folders where folder.isUnit && access(path, F_OK) != 0 { leave(path) }
            watch(slice: units)
        }
        for (watch, path) in pathOfWatch where hasLostEvents || touched.contains(watch) {
            folders[path]?.hasFocus = GnomeSource.hasFocus(path)
        }
        tell()
    }

    private func tell() {
        let known = folders.filter { $0.value.hasFocus != nil }
        guard let driver else { return }
        guard !known.isEmpty else { return driver.isOff(GnomeSource.silence) }
        driver.isLive()
        var focused: [FocusedProcess] = []
        for (path, folder) in known where folder.hasFocus == true {
            let observers = folder.processes.values.sorted { $0.id.pid < $1.id.pid }
            // The first process of a unit is the one that the desktop has started.
            let first = SystemFile.text(of: path + "/cgroup.procs")?.split(separator: "\n").first.flatMap { Int32($0) }
            if folder.isUnit, let first { focused.append(FocusedProcess(pid: first)) }
            focused += observers.filter { !folder.isUnit || $0.id.pid != first }.map { process in
                FocusedProcess(
                    pid: process.id.pid,
                    startTime: process.id.startTime,
                    application: process.application,
                    user: process.id.user
                )
            }
        }
        driver.report(
            .fact(
                .focus(focused, among: Set(known.values.flatMap(\.processes.keys).map(\.pid)))
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
