// SPDX-License-Identifier: Apache-2.0

import Logging
import NotifyBus
import NotifyLogging

@main
struct Program {
    static func main() async throws {
        let center = NotifyCenter(waitsForBus: true, logger: Logger(label: "com.example.program"))
        for await name in try await center.notifications(for: "com.example.backup.done") {
            print("heard", name)
        }
    }
}
