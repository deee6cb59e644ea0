// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

/// The focus as a name. A socket of this test takes sway's place.
@Suite struct FocusEventTests {
    private func makeScene(_ kind: BusKind, _ sway: FakeSway) throws -> Scene {
        try Scene(kind, environment: ["SWAYSOCK": sway.path, "WAYLAND_DISPLAY": "wayland-1"])
    }

    private func follow(_ scene: Scene) throws -> RunningCommand {
        let observer = try start(
            productPath("notify-wait"),
            ["--address", scene.bus.address, "-v", "-f", "org.notifybus.session.focus", "--format", "%s"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "the observer is live")
        return observer
    }

    @Test(arguments: anyBusKind())
    func `each change of the focus is posted once, with the process that has it`(kind: BusKind) throws {
        let sway = try FakeSway()
        let scene = try makeScene(kind, sway)
        let observer = try follow(scene)
        let talk = try sway.accept()
        try talk.greet(focused: 1)
        // The first focus that becomes known is no change.
        try scene.waitForFocus(of: 1)
        let (one, two) = (getpid(), scene.agentProcess)
        for number in 1...100 {
            let process = number % 2 == 0 ? one : two
            for _ in 0..<3 { talk.focus(process) }
            #expect(try observer.waitForOutputLines(number).last == String(process))
        }
        talk.send(SwayWire.Kind.workspaceEvent, #"{"change": "focus", "current": {}, "old": null}"#)
        try talk.answerTree(focused: 0)
        #expect(try observer.waitForOutputLines(101).last == "0")
        #expect(try scene.lifecycle("focus") == "0  -  sway\n")
    }

    @Test func `the agent doesn't ask the desktop unless an observer wants to know`() throws {
        let sway = try FakeSway()
        let scene = try makeScene(.daemon, sway)
        try scene.waitForStatus("sway off   0 facts: idle until an observer registers")
        let status = try scene.lifecycle("status")
        #expect(!status.contains("org.notifybus.session.focus"))
    }

    @Test func `without a source the command says so`() throws {
        let bus = try PrivateBus(.daemon)
        let agent = try start(
            productPath("notify-agent"),
            ["--address", bus.address],
            environment: withoutDesktop
        )
        try agent.waitForErrorOutput(containing: "ready")
        let result = try run(productPath("notify-lifecycle"), ["--address", bus.address, "focus"])
        #expect(result.status == 1 && result.output.isEmpty)
        #expect(result.errorOutput.contains("no source of the agent knows which program has the focus"))
    }
}

/// Packages, by the files of databases that are made up.
@Suite struct PackageTests {
    @Test func `a transaction is posted once, when its lock is given up`() throws {
        let folder = try TemporaryFolder()
        try folder.write("", to: "lock-frontend")
        let database = PackageSource.Database(folder.path, files: ["status"], locks: ["lock-frontend"])
        let recorder = Recorder<String>()
        let thread = try EventThread(name: "test")
        defer { thread.stop(waits: true) }
        thread.perform { loop in
            let driver = SourceDriver(PackageSource([database]), on: loop) { report in
                switch report {
                case .condition(.live): recorder.append("live")
                case .condition(.off(let reason)): recorder.append(reason)
                case .found(let changes): recorder.append(changes.map(\.name.string).joined())
                case .fact: break
                }
            }
            loop.tenant = driver
            driver.begin()
        }
        #expect(recorder.wait(forCount: 1))
        // A package manager: it holds the lock, and replaces the file several times.
        let manager = try start(
            python,
            [
                "-c",
                """
                import fcntl, os, sys
                os.chdir(sys.argv[1])
                lock = open("lock-frontend", "r+"); fcntl.lockf(lock, fcntl.LOCK_EX)
                for line in sys.stdin:
                    open("new", "w").write(line); os.rename("new", "status"); print("written", flush=True)
                """,
                folder.path,
            ]
        )
        for number in 1...3 {
            try manager.writeInput("\(number)\n")
            _ = try manager.waitForOutputLines(number)
        }
        manager.closeInput()
        _ = try manager.wait()
        #expect(recorder.wait(forCount: 2))
        #expect(recorder.elements == ["live", "org.notifybus.system.packages"])
        // A program that writes without a lock, such as an image builder.
        try folder.write("4", to: "new")
        rename(folder.path + "/new", folder.path + "/status")
        #expect(recorder.wait(forCount: 3))
        #expect(recorder.elements.count == 3)
    }
}
