// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore
package import NotifyNames

/// Setting the clock, or sleep, cancels a timer that never expires. See timerfd_create(2).
package final class ClockSource: EventSource {
    package static let name: NotifyName = "com.apple.system.clock_set"

    private let reporter: EventReporter
    private var timer: Int32 = -1
    private weak var loop: EventLoop?

    package init(_ reporter: EventReporter) { self.reporter = reporter }

    package func begin(on driver: SourceDriver) throws(SourceFault) {
        timer = linux_clock_timer()
        guard timer >= 0, linux_clock_timer_arm(timer) == 0 else { throw .system("can't watch the clock") }
        loop = driver.loop
        driver.loop.watch(timer) { [weak self, weak driver] in
            guard let self, let driver else { return }
            var count: UInt64 = 0
            let wasSet = read(timer, &count, 8) < 0 && errno == ECANCELED
            if linux_clock_timer_arm(timer) != 0 { return driver.fail(.system("can't watch the clock")) }
            if wasSet { reporter.post(ClockSource.name) }
        }
        driver.isLive()
    }

    package func end() {
        guard timer >= 0 else { return }
        loop?.forget(timer)
        close(timer)
        timer = -1
    }
}

extension SourceFault {
    /// A call has failed just now.
    package static func system(_ what: String) -> SourceFault {
        SourceFault("\(what): \(String(cString: strerror(errno)))")
    }
}
