// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Notices that files of `launch.d` come, change and go. See inotify(7).
///
/// It watches the folders that there are, and of the others the folder `notifybus` above, if there is that; with neither it
/// has no descriptor.
final class LaunchWatch: Sendable {
    /// How long nothing more may change until it says so, in nanoseconds: an editor writes a file in several steps.
    private static let calm: Int64 = 200_000_000

    private static let mask = UInt32(
        IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR
    )

    private struct State {
        var inotify: Int32 = -1
        var timer: Int32 = -1
    }

    private let watcher: Watcher
    private let paths: [String]
    private let changed = DeferredCall<Void>()
    private let state = Monitor(State())

    init(_ watcher: Watcher, _ folders: LaunchFolders) {
        self.watcher = watcher
        paths = folders.paths
    }

    deinit {
        state.withLock { state in
            for descriptor in [state.inotify, state.timer] where descriptor >= 0 { close(descriptor) }
        }
    }

    /// - Parameter changed: called on the watcher's thread.
    func set(_ changed: @escaping @Sendable () -> Void) { self.changed.set(changed) }

    /// Watches what there is by now.
    func refresh() {
        let places = paths.compactMap { path -> String? in
            if access(path, F_OK) == 0 { return path }
            let parent = String(path.dropLast("/launch.d".utf8.count))
            return access(parent, F_OK) == 0 ? parent : nil
        }
        guard !places.isEmpty else { return }
        let made: (inotify: Int32, timer: Int32)? = state.withLock { state in
            let isNew = state.inotify < 0
            if isNew {
                (state.inotify, state.timer) = (inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)), linux_timerfd())
            }
            // A folder that is watched already is not watched twice.
            for place in places where state.inotify >= 0 {
                _ = inotify_add_watch(state.inotify, place, LaunchWatch.mask)
            }
            return isNew && state.inotify >= 0 && state.timer >= 0 ? (state.inotify, state.timer) : nil
        }
        guard let made else { return }
        watcher.watch(source: made.inotify) {
            withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
                while read(made.inotify, buffer.baseAddress, buffer.count) > 0 {}
            }
            linux_timerfd_fire(made.timer, LaunchWatch.calm)
        }
        let changed = changed
        watcher.watch(source: made.timer) {
            var count: UInt64 = 0
            _ = read(made.timer, &count, 8)
            changed(())
        }
    }
}
