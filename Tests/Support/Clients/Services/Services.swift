// SPDX-License-Identifier: Apache-2.0

import Configuration
import Logging
import NotifyBus
import ServiceLifecycle
import SystemPackage

/// A service that reloads its configuration when a post says that it has changed.
struct Reloader: Service {
    let center: NotifyCenter
    let file: FilePath
    let apply: @Sendable (ConfigReader) async -> Void

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            try await center.withNotifications(for: "com.example.config.changed") { changes in
                // Observe first, then look.
                try await reload()
                for await _ in changes { try await reload() }
            }
        }
    }

    private func reload() async throws {
        await apply(ConfigReader(provider: try await FileProvider<JSONSnapshot>(filePath: file)))
    }
}

/// A service that says when it is up and down.
struct Announcer: Service {
    let center: NotifyCenter

    func run() async throws {
        try center.post("com.example.service.up")
        try? await gracefulShutdown()
        try center.post("com.example.service.down")
        try await center.flush()
    }
}

@main struct Program {
    static func main() async throws {
        let center = NotifyCenter.session
        let reloader = Reloader(center: center, file: "/etc/example.json") { print($0.int(forKey: "port") ?? 80) }
        let services: [any Service] = [reloader, Announcer(center: center)]
        try await ServiceGroup(
            services: services,
            gracefulShutdownSignals: [.sigterm],
            logger: Logger(label: "com.example")
        ).run()
    }
}
