// SPDX-License-Identifier: Apache-2.0

import Greeting
import Hummingbird
import Logging
import NotifyBus
import NotifyLogging
import SystemPackage

/// example-server FILE PORT - ends on SIGTERM and SIGINT, when the requests it has are answered
@main struct Program {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let port = Int(arguments[2]) else {
            print("Usage: example-server FILE PORT")
            return
        }
        let logger = Logger(label: "example-server")
        // It may start before the bus, and outlive it.
        let center = NotifyCenter(waitsForBus: true, logger: logger)
        let server = try await makeServer(
            center: center,
            file: FilePath(arguments[1]),
            port: port,
            logger: logger,
            started: { logger.info("Listening", metadata: ["port": "\($0)"]) }
        )
        try await server.runService()
    }
}
