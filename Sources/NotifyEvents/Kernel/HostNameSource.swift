// SPDX-License-Identifier: Apache-2.0

import NotifyCore
package import NotifyNames

/// The host name in the agent's UTS namespace. See uts_namespaces(7).
package final class HostNameSource: EventSource {
    package static let name: NotifyName = "com.apple.system.hostname"

    private let reporter: EventReporter
    private var file: KernelFile?
    private var text: [UInt8]?

    package init(_ reporter: EventReporter) { self.reporter = reporter }

    package func begin(on driver: SourceDriver) throws(SourceFault) {
        let file = try KernelFile("/proc/sys/kernel/hostname", on: driver.loop)
        self.file = file
        file.follow { [weak self] in self?.look() }
        look()
        driver.isLive()
    }

    package func end() { file = nil }

    private func look() {
        guard let new = file?.contents() else { return }
        let isNews = text != nil && text != new
        text = new
        if isNews { reporter.post(HostNameSource.name) }
    }
}
