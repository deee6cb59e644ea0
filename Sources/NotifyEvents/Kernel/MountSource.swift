// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
package import NotifyNames

/// File systems that are mounted and unmounted in the agent's mount namespace: the kernel reports that
/// /proc/self/mountinfo has changed, and a comparison shows how. See proc_pid_mountinfo(5).
package final class MountSource: EventSource {
    package static let mounted: NotifyName = "com.apple.system.kernel.mount"
    package static let unmounted: NotifyName = "com.apple.system.kernel.unmount"
    package static let updated: NotifyName = "com.apple.system.kernel.mountupdate"

    /// The minimum time between two checks, in milliseconds, so that a thousand mounts in a row are only a few posts.
    private static let pause: Int64 = 250

    private let reporter: EventReporter
    private var file: KernelFile?
    private var mounts: [Substring: Substring]?
    private var loop: EventLoop?
    private var timer: Int?
    private var nextLook = MonotonicTime(nanoseconds: 0)

    package init(_ reporter: EventReporter) { self.reporter = reporter }

    package func begin(on driver: SourceDriver) throws(SourceFault) {
        let file = try KernelFile("/proc/self/mountinfo", on: driver.loop)
        (self.file, loop) = (file, driver.loop)
        file.follow { [weak self] in self?.lookSoon() }
        look()
        driver.isLive()
    }

    package func end() {
        loop?.cancel(timer)
        (file, loop, timer) = (nil, nil, nil)
    }

    private func lookSoon() {
        guard timer == nil, let loop else { return }
        let wait = Int64(nextLook.millisecondsFromNow)
        if wait == 0 { return look() }
        timer = loop.after(wait) { [weak self] in
            self?.timer = nil
            self?.look()
        }
    }

    private func look() {
        nextLook = .now + MountSource.pause
        guard let bytes = file?.contents() else { return }
        let new = MountSource.parse(String(decoding: bytes, as: UTF8.self))
        defer { mounts = new }
        guard let old = mounts else { return }
        if new.contains(where: { old[$0.key] == nil }) { reporter.post(MountSource.mounted) }
        if old.contains(where: { new[$0.key] == nil }) { reporter.post(MountSource.unmounted) }
        if new.contains(where: { old[$0.key] != nil && old[$0.key] != $0.value }) { reporter.post(MountSource.updated) }
    }

    /// The options of each mount and of its file system, by mount ID.
    private static func parse(_ text: String) -> [Substring: Substring] {
        var mounts: [Substring: Substring] = [:]
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count >= 6 else { continue }
            // The mount point may change too, by a move.
            mounts[fields[0]] = fields[4...].joined(separator: " ")[...]
        }
        return mounts
    }
}
