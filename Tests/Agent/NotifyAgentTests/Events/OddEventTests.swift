// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Rare events, for the sources and the agent.
@Suite struct OddEventTests {
    /// Whether this process may set the clock. It is set to the current time, within a millisecond.
    private static func setClock() -> Bool {
        var now = timespec()
        return clock_gettime(CLOCK_REALTIME, &now) == 0 && clock_settime(CLOCK_REALTIME, &now) == 0
    }

    @Test(.enabled(if: setClock(), "this process may not set the clock"))
    func `setting the clock is a post each time`() throws {
        let scene = try EventScene(.daemon)
        let clock = try scene.observe("com.apple.system.clock_set")
        try scene.waitUntilLive("com.apple.system.clock_set")
        for round in 1...3 {
            #expect(Self.setClock())
            // Another program may set it as well.
            #expect(clock.heard.wait(for: round))
        }
        clock.observation.cancel()
    }

    @Test(.enabled(if: EventScene.mayUnshare, "needs root and mount namespaces"), arguments: anyBusKind())
    func `a time zone is followed through an absolute link as well`(kind: BusKind) throws {
        let scene = try EventScene(kind, ["--mount"])
        try scene.shell("mkdir etc; ln -s /usr/share/zoneinfo/UTC etc/localtime")
        try scene.inside("-m", script: "mount --bind \(shellWord(scene.folder.path))/etc /etc")
        let zone = try scene.observe("com.apple.system.timezone")
        for (index, name) in ["Europe/Berlin", "Asia/Tokyo", "UTC"].enumerated() {
            try scene.shell("ln -s /usr/share/zoneinfo/\(name) etc/.new; mv -T etc/.new etc/localtime")
            #expect(zone.heard.wait(for: index + 1), "\(name)")
        }
        #expect(zone.heard.value == 3)
        zone.observation.cancel()
    }

    /// Whether a user namespace can have a limit of its own.
    private static func limitsWatches() -> Bool {
        let script = "echo 1 >/proc/sys/user/max_inotify_watches"
        return EventScene.mayUnshare
            && (try? run("unshare", ["--user", "--map-root-user", "sh", "-c", script]).status) == 0
    }

    @Test(.enabled(if: limitsWatches(), "needs root, and user namespaces with a limit of watches"))
    func `without inotify watches the status says so, and once there are some the file is followed`() throws {
        let files = "file = com.example.one FOLDER/one\n"
        let scene = try EventScene(.daemon, ["--user", "--map-root-user"], configuration: files)
        func limit(_ watches: Int) throws {
            try scene.inside("-U", script: "echo \(watches) >/proc/sys/user/max_inotify_watches")
        }
        try limit(1)
        let one = try scene.observe("com.example.one")
        #expect(try waitUntil { try scene.status().contains("no more inotify watches") })
        try limit(10_000)
        // The agent tries again.
        try scene.waitUntilLive("com.example.one")
        try scene.shell(": >one")
        #expect(one.heard.wait(for: 1))
        one.observation.cancel()
    }

    @Test(.enabled(if: limitsWatches(), "needs root, and user namespaces with a limit of watches"))
    func `without inotify instances the status names the limit, and once there are some the file is followed`() throws {
        let files = "file = com.example.one FOLDER/one\n"
        let scene = try EventScene(.daemon, ["--user", "--map-root-user"], configuration: files)
        func limit(_ instances: Int) throws {
            try scene.inside("-U", script: "echo \(instances) >/proc/sys/user/max_inotify_instances")
        }
        try limit(0)
        let one = try scene.observe("com.example.one")
        #expect(try waitUntil { try scene.status().contains("fs.inotify.max_user_instances") })
        try limit(100)
        try scene.waitUntilLive("com.example.one")
        try scene.shell(": >one")
        #expect(one.heard.wait(for: 1))
        one.observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `each of fifty observers of a file's name hears each change once`(kind: BusKind) throws {
        let scene = try EventScene(kind, configuration: "file = com.example.one FOLDER/one\n")
        let observers = try (0..<50).map { _ in
            try start(
                productPath("notify-wait"),
                ["--address", scene.bus.address, "-v", "-f", "com.example.one", "com.example.end"],
                environment: withoutDesktop
            )
        }
        for observer in observers { try observer.waitForErrorOutput(containing: "the observer is live") }
        try scene.waitUntilLive("com.example.one")
        for (index, script) in [": >one", "echo x >>one", "rm one"].enumerated() {
            try scene.shell(script)
            for observer in observers { try observer.waitForOutputLines(index + 1) }
        }
        let post = try run(productPath("notify-post"), ["--address", scene.bus.address, "com.example.end"])
        #expect(post.status == 0)
        for observer in observers {
            try observer.waitForOutput(containing: "com.example.end")
            observer.send(signal: SIGTERM)
            let lines = try observer.wait().output.split(separator: "\n")
            #expect(lines == ["com.example.one", "com.example.one", "com.example.one", "com.example.end"])
        }
    }

    @Test(arguments: anyBusKind())
    func `a pinned state outlives the agent if a program has set it; otherwise it is the configured one`(
        kind: BusKind
    ) throws {
        let configuration = "set = com.example.level 7\nset = com.example.other 8\n"
        let scene = try EventScene(kind, configuration: configuration)
        let level = try scene.observe("com.example.level")
        try scene.center.setState(9, of: "com.example.level", timeout: .patience)
        let result = try run(
            productPath("notify-state"),
            ["--address", scene.bus.address, "set", "com.example.other", "5"]
        )
        #expect(result.status == 0, "\(result.errorOutput)")
        kill(scene.process, SIGKILL)
        let next = try start(
            productPath("notify-agent"),
            ["--address", scene.bus.address, "--config", "/dev/stdin", "--replace"],
            environment: withoutDesktop
        )
        try next.writeInput(configuration)
        next.closeInput()
        try next.waitForErrorOutput(containing: "ready")
        #expect(waitUntil { (try? scene.state(of: "com.example.level")) == 9 })
        // No program was there that knew this one.
        #expect(try scene.state(of: "com.example.other") == 8)
        level.observation.cancel()
    }

    @Test func `an agent whose events have no observers is no larger than one without events`() throws {
        func resident(_ configuration: String) throws -> Int {
            let scene = try EventScene(.daemon, configuration: configuration)
            let other = try scene.observe("com.example.other")
            for _ in 0..<20 { _ = try scene.state(of: "com.example.other") }
            defer { other.observation.cancel() }
            return residentBytes(of: scene.process)
        }
        // How much the allocator keeps depends on which thread came first, so the smallest of several counts.
        var (with, without): ([Int], [Int]) = ([], [])
        let isNoLarger = try (0..<10).contains { _ in
            with.append(try resident(""))
            without.append(try resident("events = none\n"))
            return with.count >= 3 && (with.min() ?? .max) - (without.min() ?? 0) < 512 << 10
        }
        #expect(isNoLarger, "\(with) and \(without)")
    }
}
