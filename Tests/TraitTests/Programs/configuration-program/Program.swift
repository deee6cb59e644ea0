// SPDX-License-Identifier: Apache-2.0

import Configuration
import NotifyBus
import NotifyConfiguration
import SystemPackage

@main
struct Program {
    static func main() async throws {
        let provider = try await NotifyFileProvider<JSONSnapshot>(
            filePath: FilePath(CommandLine.arguments[1]),
            reloadingFor: "com.example.config.changed",
            reloadFailed: { print("The file stays as it was:", $0) }
        )
        let config = ConfigReader(provider: provider)
        async let reloading: Void = provider.run()
        try await config.watchInt(forKey: "port", default: 80) { ports in
            for await port in ports { print("The port is", port) }
        }
        try await reloading
    }
}
