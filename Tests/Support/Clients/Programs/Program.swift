// SPDX-License-Identifier: Apache-2.0

import NotifyBus

@main struct Program {
    static func main() async throws {
        let settings = Settings()
        try await settings.start(.session)
        let heard = try await NotifyCenter.session.next(of: .changed, timeout: .seconds(60)) {
            try await settings.set(.session)
        }
        await settings.stop()
        print("heard", heard)
    }
}
