// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore
import NotifyNames

/// Setting the clock, or sleep, cancels a timer that never expires. See timerfd_create(2).
final class ClockSource: Source {
    static let name: NotifyName = "com.apple.system.clock_set"

    private var timer: Int32 = -1
    private weak var driver: SourceDriver?

    func begin(on driver: SourceDriver) throws(SourceFault) {
        timer = linux_clock_timer()
        guard timer >= 0, linux_clock_timer_arm(timer) == 0 else { throw .system("can't watch the clock") }
        self.driver = driver
        driver.loop.watch(timer) { [weak self] in self?.timerHasEnded() }
        driver.isLive()
    }

    func end() {
        guard timer >= 0 else { return }
        driver?.loop.forget(timer)
        close(timer)
        (timer, driver) = (-1, nil)
    }

    private func timerHasEnded() {
        var count: UInt64 = 0
        let wasSet = read(timer, &count, 8) < 0 && errno == ECANCELED
        if linux_clock_timer_arm(timer) != 0 {
            driver?.fail(.system("can't watch the clock"))
        } else if wasSet {
            driver?.post(ClockSource.name)
        }
    }
}
