// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Whether a process is stopped, as last seen.
final class ProcessLook {
    /// A debugger stops a process briefly; it counts after this many checks in a row.
    private static let lookLimit = 3

    private let process: ProcessHandle
    /// `cgroup.events` of the process's cgroup, or -1.
    let events: Int32
    private let cgroup: String?
    private var isStopped = false
    private var tracedLooks = 0
    /// How often it is checked in any case: a desktop moves a program that it has just started into a cgroup.
    private var firstLooks = 3

    init(_ process: ProcessHandle) {
        self.process = process
        cgroup = process.cgroup
        events = ProcessLook.openEvents(of: cgroup)
    }

    /// The same process as last seen, in its current cgroup.
    ///
    /// - Returns: nil if the cgroup has not changed.
    func moved() -> ProcessLook? {
        guard process.cgroup != cgroup else { return nil }
        let look = ProcessLook(process)
        look.isStopped = isStopped
        look.firstLooks = firstLooks
        return look
    }

    static func openEvents(of cgroup: String?) -> Int32 {
        cgroup.map { open($0 + "/cgroup.events", O_RDONLY | O_CLOEXEC) } ?? -1
    }

    deinit { if events >= 0 { close(events) } }

    /// Whether the next check may find something that nothing announces.
    var mustGoOn: Bool { isStopped || tracedLooks > 0 || firstLooks > 0 }

    /// Checks again.
    ///
    /// - Returns: whether it is stopped now, if that has changed.
    func change() -> Bool? {
        firstLooks = max(0, firstLooks - 1)
        // Both: the descriptor stays urgent until it is read.
        let isFrozen = ProcessLook.isFrozen(events)
        let now = isFrozen || isStoppedBySignal()
        guard now != isStopped else { return nil }
        isStopped = now
        return now
    }

    private func isStoppedBySignal() -> Bool {
        switch process.state {
        case UInt8(ascii: "T"): return true
        case UInt8(ascii: "t"):
            tracedLooks += 1
            return tracedLooks >= ProcessLook.lookLimit
        default:
            tracedLooks = 0
            return false
        }
    }

    /// Whether `cgroup.events` says `frozen 1`. See cgroups(7).
    static func isFrozen(_ events: Int32) -> Bool {
        guard events >= 0 else { return false }
        return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            let count = pread(events, buffer.baseAddress, buffer.count, 0)
            guard count > 0 else { return false }
            return says("frozen 1", UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    private static func says(_ line: StaticString, _ text: UnsafeRawBufferPointer) -> Bool {
        text.split(separator: UInt8(ascii: "\n")).contains { candidate in
            candidate.count == line.utf8CodeUnitCount
                && candidate.elementsEqual(UnsafeBufferPointer(start: line.utf8Start, count: line.utf8CodeUnitCount))
        }
    }
}
