// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The mounts of this mount namespace: poll(2) reports `POLLPRI` once after changes. See proc_pid_mountinfo(5).
///
/// inotify(7) does not say that something is mounted on a watched directory or file, which hides it.
final class MountTable: Sendable {
    private let own: OwnDescriptor

    /// - Returns: nil without /proc.
    init?() {
        let descriptor = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { return nil }
        own = OwnDescriptor(descriptor)
    }

    deinit { own.close() }

    var descriptor: Int32 { own.number }
    /// Whether the program has not closed it.
    var isOurs: Bool { own.isOurs }
}
