// SPDX-License-Identifier: Apache-2.0

import Configuration
import Glibc
import Logging
import NotifyBus
import NotifyConfiguration
import ServiceLifecycle
import SystemPackage
import TestSupport
import Testing

private let changed: NotifyName = "com.example.config.changed"

/// The trait Configuration.
@Suite struct ConfigurationTests {

    /// A file, what reads it, and a task in which that runs.
    private final class Subject: Sendable {
        let folder: TemporaryFolder
        let provider: NotifyFileProvider<JSONSnapshot>
        let failures = Counter()
        let reader: ConfigReader
        let running: Task<Void, any Error>

        init(_ center: NotifyCenter, atMostEvery interval: Duration = .milliseconds(1)) async throws {
            folder = try TemporaryFolder()
            try folder.write(#"{ "port": 0 }"#, to: "config.json")
            let provider = try await NotifyFileProvider<JSONSnapshot>(
                filePath: FilePath(folder.path + "/config.json"),
                reloadingFor: changed,
                center: center,
                atMostEvery: interval,
                reloadFailed: { [failures] _ in failures.add() }
            )
            self.provider = provider
            reader = ConfigReader(provider: provider)
            running = Task { try await provider.run() }
        }

        deinit { running.cancel() }

        func write(_ text: String) throws { try folder.write(text, to: "config.json") }

        var port: Int? { reader.int(forKey: "port") }

        /// Waits until the file is read for a post: before that, it may be read because the provider begins.
        func waitUntilLive(_ poster: NotifyCenter) async throws {
            try write("")
            #expect(
                try await eventually {
                    try poster.post(changed)
                    return failures.value > 1
                }
            )
        }
    }

    @Test(arguments: busKinds)
    func `a post reloads the file, and only what has changed is reported to those who watch it`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        let other = bus.makeCenter()
        let subject = try await Subject(bus.makeCenter())
        #expect(subject.port == 0)
        let reader = subject.reader
        let (ports, snapshots) = (Recorder<Int?>(), Counter())
        let watching = Task {
            try await reader.watchInt(forKey: "port") { updates in for await port in updates { ports.append(port) } }
        }
        let watchingAll = Task {
            try await reader.watchSnapshot { updates in for await _ in updates { snapshots.add() } }
        }
        defer {
            watching.cancel()
            watchingAll.cancel()
        }
        #expect(await eventually { ports.count == 1 && snapshots.value > 0 })
        for port in [1, 2, 2, 3] {
            let before = snapshots.value
            try subject.write("{ \"port\": \(port) }")
            #expect(
                try await eventually {
                    try other.post(changed)
                    return snapshots.value > before && ports.elements.last == port
                }
            )
        }
        #expect(await eventually { ports.count == 4 })
        #expect(ports.elements == [0, 1, 2, 3])
    }

    @Test(arguments: busKinds)
    func `a burst of 10,000 posts is at most two reloads, and the last file counts`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let poster = bus.makeCenter()
        let interval = Duration.seconds(2)
        let subject = try await Subject(bus.makeCenter(), atMostEvery: interval)
        // The file is malformed now, so each reload is counted as a failure; those who watch only get the newest snapshot.
        try await subject.waitUntilLive(poster)
        let before = (failures: subject.failures.value, posts: poster.statistics.posted)
        let clock = ContinuousClock()
        let began = clock.now
        for number in 1...10_000 {
            if number == 10_000 { try subject.write(#"{ "port": 10000 }"#) }
            try poster.post(changed)
            if number % 1_000 == 0 { try await poster.flush() }
        }
        #expect(await eventually { subject.port == 10_000 })
        // Two, the last of which found the good file, unless the machine is so slow that it takes several intervals.
        let reloads = subject.failures.value - before.failures + 1
        let most = 1 + Int((clock.now - began) / interval)
        #expect(reloads <= most)
        #expect(poster.statistics.posted - before.posts == 10_000)
    }

    @Test(arguments: busKinds)
    func `a file that is malformed or gone keeps the old values, and says so`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let other = bus.makeCenter()
        let subject = try await Subject(bus.makeCenter())
        try subject.write(#"{ "port": 1 }"#)
        #expect(
            try await eventually {
                try other.post(changed)
                return subject.port == 1
            }
        )
        for text in [#"{ "port": "#, nil] {
            if let text { try subject.write(text) } else { unlink(subject.folder.path + "/config.json") }
            let before = subject.failures.value
            #expect(
                try await eventually {
                    try other.post(changed)
                    return subject.failures.value > before
                }
            )
            #expect(subject.port == 1)
        }
        try subject.write(#"{ "port": 2 }"#)
        #expect(
            try await eventually {
                try other.post(changed)
                return subject.port == 2
            }
        )
    }

    @Test(arguments: busKinds)
    func `what was changed while the bus was away is read when it is back`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let subject = try await Subject(bus.makeCenter())
        try await subject.waitUntilLive(bus.makeCenter())
        bus.kill()
        try subject.write(#"{ "port": 1 }"#)
        try bus.restart()
        // There is no post.
        #expect(await eventually { subject.port == 1 })
    }

    @Test(arguments: busKinds)
    func `it runs as a service until the graceful shutdown, also with a stopped bus`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        let subject = try await Subject(bus.makeCenter())
        subject.running.cancel()
        try await subject.running.value
        bus.stop()
        defer { bus.resume() }
        let other = try await Subject(bus.makeCenter())
        other.running.cancel()
        let group = ServiceGroup(
            configuration: .init(services: [.init(service: other.provider)], logger: Logger(label: "test"))
        )
        async let running: Void = group.run()
        try await Task.sleep(for: .milliseconds(200))
        let clock = ContinuousClock()
        let asked = clock.now
        await group.triggerGracefulShutdown()
        try await running
        #expect(clock.now - asked < .seconds(5))
    }
}
