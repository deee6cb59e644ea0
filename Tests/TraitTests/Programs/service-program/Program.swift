// SPDX-License-Identifier: Apache-2.0

import Logging
import NotifyBus
import NotifyServiceLifecycle
import ServiceLifecycle

@main
struct Program {
    static func main() async throws {
        let backups = NotifyService(for: "com.example.backup.done") { name in
            print("heard", name)
        }
        let group = ServiceGroup(
            services: [backups],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: "com.example.program")
        )
        try await group.run()
    }
}
