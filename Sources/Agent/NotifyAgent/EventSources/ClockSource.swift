// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// Posts when the clock was set, or the machine has slept.
final class ClockSource: Source {
    static let name: NotifyName = "com.apple.system.clock_set"

    private var watch: ClockWatch?
    private weak var driver: SourceDriver?

    func begin(on driver: SourceDriver) throws(SourceFault) {
        watch = try ClockWatch(on: driver.loop) { [weak self] isWatching in
            guard let driver = self?.driver else { return }
            if isWatching { driver.post(ClockSource.name) } else { driver.fail(.system("can't watch the clock")) }
        }
        self.driver = driver
        driver.isLive()
    }

    func end() { (watch, driver) = (nil, nil) }
}
