// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// Follows files and directories on a loop.
final class FileFollower {
    private let loop: EventLoop
    private var monitors: FileMonitors
    private let handle: (FileMonitors.Change) -> Void
    private var timer: Int?

    /// - Parameter handle: called with what has become of them.
    /// - Throws: `failed` if no inotify instance is available.
    init(on loop: EventLoop, handle: @escaping (FileMonitors.Change) -> Void) throws(NotifyBusError) {
        (self.loop, self.handle) = (loop, handle)
        monitors = try FileMonitors()
        loop.watch(monitors.descriptor) { [weak self] in self?.take() }
    }

    deinit {
        loop.forget(monitors.descriptor)
        loop.cancel(timer)
    }

    /// - Parameters:
    ///   - number: the caller's own, for `handle` and `leave`.
    ///   - path: absolute.
    func follow(_ path: String, as number: Int, heedsAttributes: Bool = false) {
        let obstacle = monitors.add(number, path: path, heedsAttributes: heedsAttributes)
        arm()
        if let obstacle { handle(.obstructed(number, obstacle)) }
    }

    func leave(_ number: Int) {
        monitors.remove(number)
        arm()
    }

    private func take() {
        let changes = monitors.takeChanges()
        arm()
        for change in changes { handle(change) }
    }

    private func arm() {
        loop.cancel(timer)
        timer = monitors.deadline.map { deadline in loop.at(deadline) { [weak self] in self?.take() } }
    }
}
