// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// The X server (Xvfb), the observers and their windows are real. This test sets `_NET_ACTIVE_WINDOW` in a window
/// manager's place.
@Suite(.enabled(if: XServer.isInstalled, "Xvfb is not installed"))
struct X11SourceTests {
    /// An observer with an X window: a small X client that executes `notify-wait`, which keeps the connection.
    private func startWindowed(_ scene: Scene, _ server: XServer) throws -> (command: RunningCommand, window: UInt32) {
        let program = """
            import os, socket, struct, sys
            def take(count):
                data = b''
                while len(data) < count:
                    data += x.recv(count - len(data))
                return data
            x = socket.socket(socket.AF_UNIX)
            x.connect('/tmp/.X11-unix/X\(server.number)')
            x.sendall(struct.pack('<BxHHHHxx', 0x6c, 11, 0, 0, 0))
            head = take(8)
            rest = take(struct.unpack_from('<H', head, 6)[0] * 4)
            base, = struct.unpack_from('<I', rest, 4)
            vendor, = struct.unpack_from('<H', rest, 16)
            root, = struct.unpack_from('<I', rest, 32 + (vendor + 3) // 4 * 4 + rest[21] * 8)
            x.sendall(struct.pack('<BBHIIhhHHHHII', 1, 0, 8, base | 1, root, 0, 0, 1, 1, 0, 0, 0, 0))
            x.sendall(struct.pack('<BxH', 43, 1))
            take(32)
            x.set_inheritable(True)
            print(base | 1, flush=True)
            os.execv(sys.argv[1], sys.argv[1:])
            """
        let command = try start(
            python,
            [
                "-c", program, productPath("notify-wait"), "--address", scene.bus.address, "-v", "-f",
                "com.example.scene",
            ],
            environment: withoutDesktop
        )
        let lines = try command.waitForOutputLines(1)
        try command.waitForErrorOutput(containing: "the observer is live")
        return (command, try #require(lines.first.flatMap { UInt32($0) }))
    }

    @Test func `the program of the active window is in front, through the death of the X server`() throws {
        let server = try XServer()
        let scene = try Scene(.daemon, configuration: "focus = background\n", environment: ["DISPLAY": server.display])
        let (one, first) = try startWindowed(scene, server)
        let (other, second) = try startWindowed(scene, server)
        // Without a window manager the source reports nothing, and everyone is in front.
        try scene.waitForStatus("x11      off   0 facts: no window manager keeps _NET_ACTIVE_WINDOW")
        try scene.wait(for: ["\(one.pid) foreground default", "\(other.pid) foreground default"])

        let manager = try XClient(server)
        try manager.setActiveWindow([first])
        try scene.wait(for: ["\(one.pid) foreground x11", "\(other.pid) background x11"])
        try manager.setActiveWindow([second])
        try scene.wait(for: ["\(one.pid) background x11", "\(other.pid) foreground x11"])
        try scene.waitForStatus("x11      live  2 facts: process \(other.pid)")
        try manager.setActiveWindow([0])
        try scene.wait(for: ["\(one.pid) background x11", "\(other.pid) background x11"])
        // A window that no longer exists, and one of this process, which doesn't observe.
        try manager.setActiveWindow([0x00ff_ffff])
        try manager.setActiveWindow([try manager.makeWindow()])
        try scene.waitForStatus("process \(getpid())")

        try server.kill()
        try scene.wait(for: ["\(one.pid) foreground default", "\(other.pid) foreground default"])
        try scene.waitForStatus("x11      off")
        try server.restart()
        let another = try XClient(server)
        let (third, window) = try startWindowed(scene, server)
        try another.setActiveWindow([window])
        try scene.wait(
            for: ["\(one.pid) background x11", "\(other.pid) background x11", "\(third.pid) foreground x11"],
            timeout: .patience
        )
    }

    @Test func `ten thousand changes of the focus settle on the last, and the agent answers meanwhile`() throws {
        let server = try XServer()
        let scene = try Scene(.daemon, configuration: "focus = background\n", environment: ["DISPLAY": server.display])
        let (one, first) = try startWindowed(scene, server)
        let (other, second) = try startWindowed(scene, server)
        let manager = try XClient(server)
        try manager.setActiveWindow([second])
        try scene.wait(for: ["\(one.pid) background x11", "\(other.pid) foreground x11"])
        let memory = residentBytes(of: scene.agentProcess)
        for _ in 0..<10 {
            try manager.setActiveWindow((0..<1_000).map { $0.isMultiple(of: 2) ? second : first })
            // It returns once the agent has answered.
            try scene.lifecycle("list")
        }
        try scene.wait(for: ["\(one.pid) foreground x11", "\(other.pid) background x11"])
        #expect(residentBytes(of: scene.agentProcess) - memory < 16 << 20)
    }

    @Test func `on Wayland or without a display the source is off, and says why`() throws {
        let wayland = try Scene(.daemon, environment: ["DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"])
        #expect(try wayland.statusHas("x11      off   0 facts: this is a Wayland session"))
        let ignored = try Scene(.daemon, configuration: "ignore = x11\nignore = sway\n")
        let status = try ignored.lifecycle("status")
        #expect(!status.contains("x11") && !status.contains("sway") && status.contains("gnome"))
        let observer = try ignored.startObserver()
        #expect(try ignored.lines() == ["\(observer.pid) foreground default"])
    }
}
