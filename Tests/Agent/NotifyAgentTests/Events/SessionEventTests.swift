// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Services on a session bus. Both bus daemons, the agent and the observers are real; the services are
/// python3-dbusmock's, with the interfaces of the real ones.
@Suite(.enabled(if: MockLogind.isInstalled && isInstalled("busctl"), "python3-dbusmock or busctl is not installed"))
struct SessionEventTests {
    /// A service on a bus, until the last reference is released.
    private final class MockService {
        let bus: PrivateBus
        let name: String
        let path: String
        private let process: RunningCommand

        init(_ bus: PrivateBus, _ name: String, _ path: String, _ arguments: [String]) throws {
            (self.bus, self.name, self.path) = (bus, name, path)
            process = try start(
                python,
                ["-m", "dbusmock", "--session"] + arguments,
                environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address, "DISPLAY": nil],
                output: .null
            )
            #expect(try waitUntil { try call("org.freedesktop.DBus.Peer", "Ping") == 0 })
        }

        @discardableResult
        func call(_ interface: String, _ arguments: String...) throws -> Int32 {
            try run("busctl", ["--address=\(bus.address)", "call", name, path, interface] + arguments).status
        }

        func end() throws {
            process.send(signal: SIGKILL)
            _ = try process.wait()
        }
    }

    @Test func `a portal that fails to answer is asked again`() throws {
        let (name, path) = ("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop")
        let scene = try EventScene(.daemon)
        let template = """
            BUS_NAME = '\(name)'
            MAIN_OBJ = '\(path)'
            MAIN_IFACE = 'org.freedesktop.portal.Settings'
            SYSTEM_BUS = False
            FAIL = "dbus.exceptions.DBusException('', name='org.freedesktop.DBus.Error.NoReply')"
            CODE = "self.count = getattr(self, 'count', 0) + 1\\nif self.count < 3: raise " + FAIL
            def load(mock, parameters):
                mock.AddMethod(MAIN_IFACE, 'Read', 'ss', 'v', CODE + "\\nret = dbus.UInt32(1, variant_level=2)")
            """
        let file = "\(scene.folder.path)/portal.py"
        #expect(try run("sh", ["-c", "cat >\(shellWord(file))"], input: template).status == 0)
        let portal = try MockService(scene.bus, name, path, ["--template", file])
        let appearance = try scene.observe("org.notifybus.session.appearance")
        try scene.waitUntilLive("org.notifybus.session.appearance")
        #expect(try scene.state(of: "org.notifybus.session.appearance") == 1)
        appearance.observation.cancel()
        try portal.end()
    }

    @Test(arguments: anyBusKind())
    func `each switch between dark and light is one post, and so is one made while the portal was away`(kind: BusKind)
        throws
    {
        let (name, settings) = ("org.freedesktop.portal.Desktop", "org.freedesktop.portal.Settings")
        let scene = try EventScene(kind)
        let appearance = try scene.observe("org.notifybus.session.appearance")
        let alias = try scene.observe("AppleInterfaceThemeChangedNotification")
        func portal(_ scheme: Int) throws -> MockService {
            let path = "/org/freedesktop/portal/desktop"
            let template = """
                BUS_NAME = '\(name)'
                MAIN_OBJ = '\(path)'
                MAIN_IFACE = '\(settings)'
                SYSTEM_BUS = False
                def load(mock, parameters):
                    mock.AddMethod(MAIN_IFACE, 'Read', 'ss', 'v', 'ret = dbus.UInt32(\(scheme), variant_level=2)')
                """
            let file = "\(scene.folder.path)/portal.py"
            #expect(try run("sh", ["-c", "cat >\(shellWord(file))"], input: template).status == 0)
            return try MockService(scene.bus, name, path, ["--template", file])
        }
        func choose(_ portal: MockService, _ group: String, _ scheme: Int) throws {
            func mock(_ arguments: [String]) throws {
                let object = ["--address=\(scene.bus.address)", "call", name, portal.path, "org.freedesktop.DBus.Mock"]
                let result = try run("busctl", object + arguments)
                #expect(result.status == 0, "\(result.errorOutput)")
            }
            if group == "org.freedesktop.appearance" {
                let answer = "ret = dbus.UInt32(\(scheme), variant_level=2)"
                try mock(["AddMethod", "sssss", settings, "Read", "ss", "v", answer])
            }
            let change = ["3", "s", group, "s", "color-scheme", "v", "u", "\(scheme)"]
            try mock(["EmitSignal", "sssav", settings, "SettingChanged", "ssv"] + change)
        }
        var service = try portal(0)
        try scene.waitUntilLive("org.notifybus.session.appearance")
        try choose(service, "org.freedesktop.appearance", 1)
        #expect(appearance.heard.wait(for: 1))
        #expect(try scene.state(of: "AppleInterfaceThemeChangedNotification") == 1)
        // Neither another setting nor the same value again is a change.
        try choose(service, "org.example.appearance", 2)
        try choose(service, "org.freedesktop.appearance", 1)
        try choose(service, "org.freedesktop.appearance", 2)
        #expect(appearance.heard.wait(for: 2))
        #expect(try scene.state(of: "org.notifybus.session.appearance") == 2)
        try service.end()
        #expect(try waitUntil { try scene.state(of: "org.notifybus.session.appearance") == 0 })
        service = try portal(1)
        #expect(appearance.heard.wait(for: 3) && alias.heard.wait(for: 3))
        #expect(try scene.state(of: "org.notifybus.session.appearance") == 1)
        #expect(appearance.heard.value == 3)
        for each in [appearance.observation, alias.observation] { each.cancel() }
        try service.end()
    }

    @Test(arguments: anyBusKind())
    func `a screen saver counts until logind first reports a lock`(kind: BusKind) throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        let scene = try EventScene(kind, environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.bus.address])
        let name = "org.gnome.ScreenSaver"
        let saver = try MockService(scene.bus, name, "/org/gnome/ScreenSaver", ["--template", "gnome_screensaver"])
        let lock = try scene.observe("org.notifybus.session.lock")
        try scene.waitUntilLive("org.notifybus.session.lock")
        #expect(try waitUntil { try scene.state(of: "org.notifybus.session.active") == 1 })
        try saver.call(name, "SetActive", "b", "true")
        #expect(lock.heard.wait(for: 1))
        #expect(try scene.state(of: "org.notifybus.session.lock") == 1)
        try saver.call(name, "SetActive", "b", "false")
        #expect(lock.heard.wait(for: 2))
        #expect(try scene.state(of: "org.notifybus.session.lock") == 0)
        try logind.setLocked("2", true)
        #expect(lock.heard.wait(for: 3))
        // From now on it only blanks the screen.
        try saver.call(name, "SetActive", "b", "true")
        try logind.setLocked("2", false)
        #expect(lock.heard.wait(for: 4))
        #expect(try scene.state(of: "org.notifybus.session.lock") == 0)
        try saver.call(name, "SetActive", "b", "false")
        try scene.center.synchronize(timeout: nil)
        #expect(lock.heard.value == 4)
        lock.observation.cancel()
        try saver.end()
    }

    @Test(arguments: anyBusKind())
    func `without logind the screen saver alone reports the lock`(kind: BusKind) throws {
        let scene = try EventScene(kind)
        let name = "org.gnome.ScreenSaver"
        let lock = try scene.observe("org.notifybus.session.lock")
        let saver = try MockService(scene.bus, name, "/org/gnome/ScreenSaver", ["--template", "gnome_screensaver"])
        try scene.waitUntilLive("org.notifybus.session.lock")
        for round in 1...2 {
            try saver.call(name, "SetActive", "b", "\(round == 1)")
            #expect(lock.heard.wait(for: round))
            #expect(try scene.state(of: "org.notifybus.session.lock") == (round == 1 ? 1 : 0))
        }
        lock.observation.cancel()
        try saver.end()
    }
}
