// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Whether the bus passes posts on. A proxy that this program was not told of, such as firejail's, may keep them back.
enum Echo {
    static let obstacle =
        "the bus does not pass posts on: a proxy stands in front of it, and nothing that others post is heard; see "
        + "NOTIFYBUS_RELAY in notify-wait(1)"

    private static let limit = Duration.seconds(1)

    /// What is wrong, as a line; nil if posts are heard, or nothing looks like a proxy.
    static func obstacle(_ center: NotifyCenter, _ bus: NotifyCenter.Bus) -> String? {
        // In a sandbox that says what it is, the relay tells what is heard.
        guard bus.isWhole, mayBeBehindProxy(center) else { return nil }
        let hasHeard = Monitor(false)
        do throws(NotifyBusError) {
            let name = try NotifyName("org.notifybus.echo.\(getpid()).\(Clock.monotonic)")
            let observation = try center.addObserver(for: name, timeout: limit) { _ in
                hasHeard.withLock { $0 = true }
                hasHeard.wakeAll()
            }
            defer { observation.cancel() }
            // By another connection, as others do it.
            let other = NotifyCenter(bus: bus)
            try other.postOnceConnected(name)
            try other.synchronize(timeout: limit)
            return hasHeard.wait(until: .after(limit)) { $0 ? true : nil } == true ? nil : obstacle
        } catch {
            // It can't be determined.
            return nil
        }
    }

    /// Whether the other end of the connection is a proxy, or a process that is not seen from here.
    private static func mayBeBehindProxy(_ center: NotifyCenter) -> Bool {
        let answer = Monitor<Bool?>(nil)
        let isAccepted = center.perform { link in
            let isPossible = isProxy(behind: link.descriptor)
            answer.withLock { $0 = isPossible }
            answer.wakeAll()
        }
        return isAccepted && answer.wait(until: .after(limit)) { $0 } == true
    }

    private static func isProxy(behind socket: Int32) -> Bool {
        // A struct ucred.
        var credentials: (pid: pid_t, user: uid_t, group: gid_t) = (-1, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return false }
        if credentials.pid == 0 { return true }
        let file = open("/proc/\(credentials.pid)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            let count = max(0, read(file, buffer.baseAddress, buffer.count))
            return buffer[..<count].starts(with: "xdg-dbus-proxy".utf8)
        }
    }
}
