// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import Greeting
import Logging
import NotifyBus
import ServiceLifecycle
import Synchronization
import SystemPackage
import Testing

/// Each test has a bus of its own inside the process: they need no daemon, and run in parallel.
@Suite struct GreetingTests {

    /// A server on a port of its own, as long as a closure runs.
    private func withServer(_ body: (Client) async throws -> Void) async throws {
        let bus = NotifyCenter.Bus.inProcess()
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(#"{ "greeting": "Hello" }"#.utf8).write(to: file, options: .atomic)
        let (ports, started) = AsyncStream.makeStream(of: Int.self)
        let (messages, message) = AsyncStream.makeStream(of: String.self)
        let logger = Logger(label: "test") { _ in Listener { message.yield($0) } }
        let server = try await makeServer(
            center: NotifyCenter(bus: bus),
            file: FilePath(file.path),
            port: 0,
            logger: logger,
            started: { started.yield($0) }
        )
        let group = ServiceGroup(configuration: .init(services: [.init(service: server)], logger: logger))
        let running = Task { try await group.run() }
        let port = try #require(await ports.first { _ in true })
        let client = Client(
            bus: bus,
            center: NotifyCenter(bus: bus),
            file: file,
            port: port,
            group: group,
            running: running,
            messages: messages
        )
        do {
            try await body(client)
        } catch {
            running.cancel()
            throw error
        }
        await group.triggerGracefulShutdown()
        try await running.value
    }

    private struct Client {
        let bus: NotifyCenter.Bus
        let center: NotifyCenter
        let file: URL
        let port: Int
        let group: ServiceGroup
        let running: Task<Void, any Error>
        /// What the server logs.
        let messages: AsyncStream<String>

        func ask(_ path: String, _ method: String = "GET") async throws -> (status: Int, text: String) {
            let url = try #require(URL(string: "http://127.0.0.1:\(port)\(path)"))
            var request = URLRequest(url: url)
            request.httpMethod = method
            let (data, response) = try await URLSession(configuration: .ephemeral).data(for: request)
            return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
        }

        func save(_ greeting: String) throws {
            try Data(greeting.utf8).write(to: file, options: .atomic)
        }

        /// Whether the server comes to greet like this, within a minute.
        func isGreeted(_ greeting: String) async throws -> Bool {
            for _ in 0..<6_000 {
                if try await ask("/").text == greeting { return true }
                try await Task.sleep(for: .milliseconds(10))
            }
            return false
        }
    }

    @Test func `a post has the file read again, and a malformed one keeps the greeting`() async throws {
        try await withServer { client in
            #expect(try await client.isGreeted("Hello"))
            try client.save(#"{ "greeting": "Good morning" }"#)
            try client.center.post(.greetingChanged)
            #expect(try await client.isGreeted("Good morning"))
            try client.save(#"{ "greeting": "#)
            try client.center.post(.greetingChanged)
            #expect(await client.messages.contains { $0 == "The file stays as it was" })
            #expect(try await client.ask("/").text == "Good morning")
            try client.save(#"{ "greeting": "Good night" }"#)
            try client.center.post(.greetingChanged)
            #expect(try await client.isGreeted("Good night"))
        }
    }

    @Test func `a request waits for what another posts`() async throws {
        try await withServer { client in
            async let answer = client.ask("/news/weather")
            #expect(await client.messages.contains { $0 == "Waits" })
            // It has begun to wait, and may not observe yet. The task is not cancelled: in Foundation for Linux a request that
            // is cancelled while its answer comes can block for good.
            let isOver = Flag()
            let posting = Task {
                while !isOver.isSet {
                    _ = try await client.ask("/news/weather", "POST")
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            defer { isOver.set() }
            let (status, text) = try await answer
            #expect((status, text) == (200, "com.example.news.weather"))
            isOver.set()
            try await posting.value
        }
    }

    @Test func `a client posts no other names, and a name that is none is a bad request`() async throws {
        try await withServer { client in
            let everything = try await client.center.notifications(matching: .everything)
            #expect(try await client.ask("/news/" + String(repeating: "x", count: 600), "POST").status == 400)
            #expect(try await client.ask("/news/com.apple.system.timezone", "POST").status == 202)
            var names = everything.makeAsyncIterator()
            #expect(await names.next() == "com.example.news.com.apple.system.timezone")
        }
    }

    @Test func `the graceful shutdown answers the request that waits, and ends the server`() async throws {
        try await withServer { client in
            async let answer = client.ask("/news/weather")
            #expect(await client.messages.contains { $0 == "Waits" })
            await client.group.triggerGracefulShutdown()
            let status = try await answer.status
            #expect(status == 503)
            try await client.running.value
        }
    }

    @Test func `it survives the bus, and reads the file again when that is back`() async throws {
        try await withServer { client in
            #expect(try await client.isGreeted("Hello"))
            client.bus.disconnect()
            try client.save(#"{ "greeting": "Welcome back" }"#)
            // The provider's first look at the file may only come now.
            #expect(try await client.ask("/").status == 200)
            #expect(try await client.ask("/news/weather", "POST").status == 202)
            client.bus.reconnect()
            #expect(try await client.isGreeted("Welcome back"))
        }
    }
}

private final class Flag: Sendable {
    private let state = Mutex(false)
    var isSet: Bool { state.withLock { $0 } }
    func set() { state.withLock { $0 = true } }
}

/// Passes on each message that is logged.
private struct Listener: LogHandler {
    let hear: @Sendable (String) -> Void
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    init(_ hear: @escaping @Sendable (String) -> Void) { self.hear = hear }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { hear("\(event.message)") }
}
