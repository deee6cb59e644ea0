// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@testable import NotifyAgent

/// Programs that Lomiri stops while the user doesn't look at them. The signals have the types that lomiri-app-launch
/// publishes, those from before 2017 included; this test stops the programs itself.
@Suite struct LomiriTests {
    private func say(_ member: String, _ process: pid_t, on scene: Scene, isOld: Bool = false) throws {
        let signal = "\(LomiriSource.interfaces[isOld ? 1 : 0]).Application\(member)"
        let result = try run(
            "dbus-send",
            ["--bus=\(scene.bus.address)", "--type=signal", "/", signal, "string:org.example.App"]
                + (isOld ? [] : ["string:1511"]) + ["array:uint64:\(process)"]
        )
        try #require(result.status == 0, "\(result.errorOutput)")
    }

    private func waitUntilParked(_ isParked: Bool, _ scene: Scene) throws {
        let isSo = try waitUntil(timeout: .patience) {
            try scene.lifecycle("list", "--json").contains(#""parked":\#(isParked)"#)
        }
        try #require(isSo)
    }

    @Test(arguments: anyBusKind(), [false, true])
    func `what Lomiri stops is parked at once, and hears each name once when it continues`(kind: BusKind, isOld: Bool)
        throws
    {
        let scene = try Scene(kind, environment: ["XDG_CURRENT_DESKTOP": "Lomiri"])
        let observer = try scene.startObserver()
        try scene.waitForStatus("lomiri live")
        observer.send(signal: SIGSTOP)
        let isStopped = waitUntil(timeout: .patience) { processState(observer.pid) == "T" }
        try #require(isStopped)
        // Nothing is posted, so the agent has no other occasion to look at it.
        try say("Paused", observer.pid, on: scene, isOld: isOld)
        try waitUntilParked(true, scene)
        for _ in 0..<3 {
            let post = try run(productPath("notify-post"), ["--address", scene.bus.address, "com.example.scene"])
            try #require(post.status == 0)
        }
        observer.send(signal: SIGCONT)
        try say("Resumed", observer.pid, on: scene, isOld: isOld)
        try waitUntilParked(false, scene)
        #expect(try observer.waitForOutputLines(1) == ["com.example.scene"])
        // A second delivery of the first post would have come by now.
        let last = try run(productPath("notify-post"), ["--address", scene.bus.address, "com.example.scene"])
        try #require(last.status == 0)
        #expect(try observer.waitForOutputLines(2).count == 2)
        observer.send(signal: SIGTERM)
        #expect(try observer.wait().output == "com.example.scene\ncom.example.scene\n")
    }

    @Test func `nobody can have a program parked by saying that it was stopped`() throws {
        let scene = try Scene(.daemon, environment: ["XDG_CURRENT_DESKTOP": "Lomiri"])
        let observer = try scene.startObserver()
        try scene.waitForStatus("lomiri live")
        for process in [observer.pid, 1, scene.agentProcess] { try say("Paused", process, on: scene) }
        // The agent has heard of it by the time it answers this.
        #expect(try scene.lifecycle("list", "--json").contains(#""parked":false"#))
        let post = try run(productPath("notify-post"), ["--address", scene.bus.address, "com.example.scene"])
        try #require(post.status == 0)
        #expect(try observer.waitForOutputLines(1) == ["com.example.scene"])
    }

    @Test func `a signal has at most 64 processes looked at, each once`() {
        func found(_ numbers: [UInt64]) -> Set<Int32> {
            LomiriSource(BusLink(bus: .address("unix:path=/nowhere"))).handle(
                BusSignal(
                    sender: ":1.7",
                    path: "/",
                    interface: LomiriSource.interfaces[0],
                    member: LomiriSource.members[0],
                    arguments: [.string("app"), .string("1"), .array(element: "t", numbers.map { .uint64($0) })]
                )
            )
        }
        #expect(found([7, 8, 7, 7]) == [7, 8])
        #expect(found(Array(1...1_000)) == Set(1...64))
        // Repetitions and what is no number of a process count, too.
        #expect(found(Array(repeating: 7, count: 64) + [8]) == [7])
        #expect(found([0, .max, UInt64(Int32.max) + 1, 9]) == [9])
    }
}
