// SPDX-License-Identifier: Apache-2.0

import Configuration
import Hummingbird
import Logging
import NotifyBus
import NotifyConfiguration
import ServiceLifecycle
import SystemPackage

extension NotifyName {
    /// Posted by the program that has changed the file.
    public static let greetingChanged: Self = "com.example.greeting.changed"
}

/// A server that greets, posts for its clients, and lets them wait for a post.
///
/// - `GET /` answers with the greeting in the file, which is read again when ``NotifyBus/NotifyName/greetingChanged`` is
///   posted.
/// - `POST /news/NAME` posts `com.example.news.NAME`.
/// - `GET /news/NAME` answers when that is posted: with 204 if it isn't within a minute, and with 503 at once if the server
///   is told to end.
///
/// - Parameters:
///   - center: the center that posts and observes. A test passes one that needs no bus.
///   - file: a JSON file.
///   - port: the port on this machine; 0 for one that is free.
///   - logger: logs for the server.
///   - started: is told the port.
public func makeServer(
    center: NotifyCenter,
    file: FilePath,
    port: Int,
    logger: Logger,
    started: @escaping @Sendable (Int) -> Void = { _ in }
) async throws -> some ApplicationProtocol {
    let provider = try await NotifyFileProvider<JSONSnapshot>(
        filePath: file,
        reloadingFor: .greetingChanged,
        center: center,
        reloadFailed: { logger.warning("The file stays as it was", metadata: ["reason": "\($0)"]) }
    )
    let config = ConfigReader(provider: provider)
    let router = Router()
    router.get("/") { _, _ in config.string(forKey: "greeting", default: "Hello") }
    router.post("/news/{name}") { _, context in
        try center.post(news(in: context))
        return HTTPResponse.Status.accepted
    }
    router.get("/news/{name}") { _, context in
        let name = try news(in: context)
        context.logger.info("Waits", metadata: ["name": "\(name)"])
        do {
            // Told to end, the server doesn't wait for a post.
            return try await cancelWhenGracefulShutdown {
                try await center.next(of: name, timeout: .seconds(60)).rawValue
            }
        } catch NotifyBusError.Code.timedOut {
            throw HTTPError(.noContent)
        } catch NotifyBusError.Code.cancelled {
            throw HTTPError(.serviceUnavailable)
        } catch {
            throw error
        }
    }
    return Application(
        router: router,
        configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port)),
        services: [provider],
        onServerRunning: { channel in started(channel.localAddress?.port ?? port) },
        logger: logger
    )
}

/// The name that a request is about. A client can use no others; otherwise any client could post anything.
private func news(in context: BasicRequestContext) throws -> NotifyName {
    guard let name = try NotifyName(rawValue: "com.example.news." + context.parameters.require("name")) else {
        throw HTTPError(.badRequest, message: "This is no valid name.")
    }
    return name
}
