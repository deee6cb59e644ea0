// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// The host name in the agent's UTS namespace. See uts_namespaces(7).
final class HostNameSource: Source {
    static let name: NotifyName = "com.apple.system.hostname"

    private var file: KernelFile?
    private var text: [UInt8]?
    private weak var driver: SourceDriver?

    func begin(on driver: SourceDriver) throws(SourceFault) {
        let file = try KernelFile("/proc/sys/kernel/hostname", on: driver.loop)
        (self.file, self.driver) = (file, driver)
        file.follow { [weak self] in self?.look() }
        look()
        driver.isLive()
    }

    func end() { (file, driver) = (nil, nil) }

    private func look() {
        guard let new = file?.contents() else { return }
        let isNews = text != nil && text != new
        text = new
        if isNews { driver?.post(HostNameSource.name) }
    }
}
