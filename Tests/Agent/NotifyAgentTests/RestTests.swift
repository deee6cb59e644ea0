// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// What sources cost while nothing changes.
@Suite(.enabled(if: XServer.isInstalled && MockLogind.isInstalled, "Xvfb or python3-dbusmock is not installed"))
struct RestTests {
    @Test func `live sources wake nobody, and they end without observers`() throws {
        let (logind, server, sway) = (try MockLogind(), try XServer(), try FakeSway())
        try logind.addSession("2", user: geteuid())
        let manager = try XClient(server)
        try manager.setActiveWindow([0])
        let scene = try Scene(
            .daemon,
            environment: [
                "DBUS_SYSTEM_BUS_ADDRESS": logind.bus.address, "DISPLAY": server.display, "SWAYSOCK": sway.path,
            ]
        )
        _ = try scene.lifecycle("status")
        let alone = threadCount(of: scene.agentProcess)
        let observer = try scene.startObserver()
        let talk = try sway.accept()
        try talk.greet(focused: 0)
        for name in ["logind   live", "x11      live", "sway     live"] { try scene.waitForStatus(name) }
        #expect(threadCount(of: scene.agentProcess) > alone)

        // Nothing needs to be polled for an observer in the background.
        try scene.lifecycle("background", "\(observer.pid)")
        // The agent checks once more after a second that nothing is left to watch.
        #expect(try sleeps(scene.agentProcess, for: "3s"))

        observer.send(signal: SIGKILL)
        _ = try observer.wait(timeout: .patience)
        #expect(waitUntil(timeout: .patience) { threadCount(of: scene.agentProcess) <= alone })
        #expect(try scene.statusHas("x11      off   1 fact: idle until an observer registers"))
        // The next observer starts them again.
        let next = try scene.startObserver()
        let another = try sway.accept()
        try another.greet(focused: next.pid)
        try scene.waitForStatus("sway     live")
        try scene.waitForStatus("x11      live")
        #expect(try scene.lines() == ["\(next.pid) foreground default"])
    }
}
