// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames

/// How long programs wait for memory: the kernel's pressure stall information. It reports when some or all of them have
/// been stalled for that long within two seconds; unprivileged programs may choose windows of multiples of that.
final class MemorySource: Source {
    static let name: NotifyName = "org.notifybus.system.memory"

    /// The trigger for each level: stall and window in microseconds.
    private static let triggers = ["some 200000 2000000", "full 100000 2000000"]
    /// How long a level lasts after the kernel has last reported it, in milliseconds.
    private static let timeLimit: Int64 = 10_000

    private var files: [KernelFile] = []
    private var reported = [MonotonicTime?](repeating: nil, count: 2)
    private var level: UInt64 = 0
    private weak var driver: SourceDriver?
    private var timer: Int?

    func begin(on driver: SourceDriver) throws(SourceFault) {
        self.driver = driver
        for (index, trigger) in MemorySource.triggers.enumerated() {
            let file = try KernelFile("/proc/pressure/memory", O_RDWR, on: driver.loop)
            try file.write(trigger)
            files.append(file)
            file.follow { [weak self] in
                self?.reported[index] = .now
                self?.look()
            }
        }
        driver.note(MemorySource.name, state: level)
        driver.isLive()
    }

    func end() {
        driver?.loop.cancel(timer)
        (files, driver, timer) = ([], nil, nil)
        (reported, level) = ([nil, nil], 0)
    }

    private func look() {
        let now = MonotonicTime.now
        let ends = reported.map { $0.map { $0 + MemorySource.timeLimit } }
        let new = UInt64(ends.lastIndex { $0.map { $0 > now } ?? false }.map { $0 + 1 } ?? 0)
        if new != level {
            level = new
            driver?.post(MemorySource.name, state: new)
        }
        driver?.loop.cancel(timer)
        // The only time it wakes by itself, and only while there is pressure.
        timer =
            new == 0
            ? nil
            : ends[Int(new) - 1].flatMap { end in
                driver?.loop.after(Int64(end.millisecondsFromNow)) { [weak self] in self?.look() }
            }
    }
}
