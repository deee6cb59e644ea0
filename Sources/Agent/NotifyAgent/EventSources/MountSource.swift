// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames

/// File systems that are mounted and unmounted in the agent's mount namespace: the kernel reports that
/// /proc/self/mountinfo has changed, and a comparison shows how. See proc_pid_mountinfo(5).
final class MountSource: Source {
    static let mounted: NotifyName = "com.apple.system.kernel.mount"
    static let unmounted: NotifyName = "com.apple.system.kernel.unmount"
    static let updated: NotifyName = "com.apple.system.kernel.mountupdate"

    /// The minimum time between two checks, in milliseconds, so that a thousand mounts in a row are only a few posts.
    private static let pause: Int64 = 250

    private var file: KernelFile?
    private var mounts: [Substring: Substring]?
    private weak var driver: SourceDriver?
    private var timer: Int?
    private var nextLook = MonotonicTime(nanoseconds: 0)

    func begin(on driver: SourceDriver) throws(SourceFault) {
        let file = try KernelFile("/proc/self/mountinfo", on: driver.loop)
        (self.file, self.driver) = (file, driver)
        file.follow { [weak self] in self?.lookSoon() }
        look()
        driver.isLive()
    }

    func end() {
        driver?.loop.cancel(timer)
        (file, driver, timer) = (nil, nil, nil)
    }

    private func lookSoon() {
        guard timer == nil, let driver else { return }
        let wait = Int64(nextLook.millisecondsFromNow)
        if wait == 0 { return look() }
        timer = driver.loop.after(wait) { [weak self] in
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
        if new.contains(where: { old[$0.key] == nil }) { driver?.post(MountSource.mounted) }
        if old.contains(where: { new[$0.key] == nil }) { driver?.post(MountSource.unmounted) }
        if new.contains(where: { old[$0.key] != nil && old[$0.key] != $0.value }) { driver?.post(MountSource.updated) }
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
