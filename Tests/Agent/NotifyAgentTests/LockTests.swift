// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Whom a locked screen affects. The bus, the agent and the observers are real; logind is python3-dbusmock's.
@Suite(.enabled(if: MockLogind.isInstalled, "python3-dbusmock is not installed"))
struct LockTests {
    private let logind: MockLogind

    init() throws {
        logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
    }

    private func makeScene(_ kind: BusKind, configuration: String = "") throws -> Scene {
        try Scene(
            kind,
            configuration: configuration,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.bus.address]
        )
    }

    /// Locks the screen, and returns once the agent knows.
    private func lock(_ scene: Scene) throws {
        try scene.waitForStatus("session 2 of user \(geteuid()) active\n")
        try logind.setLocked("2", true)
        try scene.waitForStatus("session 2 of user \(geteuid()) active, locked\n")
    }

    private func post(_ scene: Scene, _ names: String...) throws {
        #expect(try run(productPath("notify-post"), ["--address", scene.bus.address] + names).status == 0)
    }

    @Test(arguments: anyBusKind())
    func `with the screen locked and no setting, notify-wait hears`(kind: BusKind) throws {
        let scene = try makeScene(kind)
        let observer = try scene.startObserver()
        try lock(scene)
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])
        try post(scene, "com.example.scene")
        #expect(try observer.waitForOutputLines(1) == ["com.example.scene"])
    }

    @Test(arguments: anyBusKind())
    func `with the screen locked, a program that follows the desktop hears nothing, and hears again afterwards`(
        kind: BusKind
    ) throws {
        let scene = try makeScene(kind)
        let center = NotifyCenter(bus: .address(scene.bus.address))
        try center.lifecycle.setFollowsDesktop(true) { _ in }
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        try lock(scene)
        try scene.wait(for: ["\(getpid()) background logind"])
        try post(scene, "com.example.locked")
        try logind.setLocked("2", false)
        try scene.wait(for: ["\(getpid()) foreground default"])
        // If the first one had been heard, it would come before this.
        try post(scene, "com.example.unlocked")
        #expect(heard.wait { !$0.isEmpty })
        #expect(heard.elements == ["com.example.unlocked"])
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `with session = background, no program hears while the screen is locked`(kind: BusKind) throws {
        let scene = try makeScene(kind, configuration: "session = background\n")
        let observers = try (0..<2).map { _ in try scene.startObserver() }
        let pids = observers.map(\.pid)
        try lock(scene)
        try scene.wait(for: Set(pids.map { "\($0) background logind" }))
        try post(scene, "com.example.scene", "com.example.scene")
        try logind.setLocked("2", false)
        try scene.wait(for: Set(pids.map { "\($0) foreground default" }))
        try post(scene, "com.example.scene")
        for observer in observers {
            try observer.waitForOutputLines(1)
            observer.send(signal: SIGTERM)
            #expect(try observer.wait().output == "com.example.scene\n")
        }
    }

    @Test(
        .enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"),
        arguments: anyBusKind()
    )
    func `with session = background, a program in a sandbox hears nothing while the screen is locked, either`(
        kind: BusKind
    ) throws {
        let scene = try makeScene(kind, configuration: "session = background\n")
        let request = try run(productPath("notify-agent"), ["--relay", "--address", scene.bus.address])
        #expect(request.status == 0, "\(request.errorOutput)")
        let sandbox = try FlatpakSandbox(on: scene.bus, talkingTo: ["org.notifybus.Relay1"])
        let observer = try sandbox.start(productPath("notify-wait"), ["-v", "-f", "com.example.*"])
        try observer.waitForErrorOutput(containing: "the observer is live")
        let process = try #require(scene.lines().first?.split(separator: " ").first)
        try lock(scene)
        try scene.wait(for: ["\(process) background logind"])
        try post(scene, "com.example.locked")
        try logind.setLocked("2", false)
        try scene.wait(for: ["\(process) foreground default"])
        // If the first one had been heard, it would come before this.
        try post(scene, "com.example.unlocked")
        #expect(try observer.waitForOutputLines(1) == ["com.example.unlocked"])
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: anyBusKind())
    func `with session = ignore, the lock doesn't affect even a program that follows the desktop`(kind: BusKind) throws
    {
        let scene = try makeScene(kind, configuration: "session = ignore\n")
        let center = NotifyCenter(bus: .address(scene.bus.address))
        try center.lifecycle.setFollowsDesktop(true) { _ in }
        let heard = Recorder<String>()
        let observation = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) {
            heard.append($0.string)
        }
        try lock(scene)
        #expect(try scene.lines() == ["\(getpid()) foreground default"])
        try post(scene, "com.example.a")
        #expect(heard.wait(forCount: 1))
        observation.cancel()
    }
}
