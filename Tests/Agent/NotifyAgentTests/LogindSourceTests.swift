// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport
import Testing

/// The agent, the observer and the daemon of the bus that takes the system bus's place are real. logind is
/// python3-dbusmock's, with the interface and the signals of systemd's. Here the session affects everyone; LockTests
/// are about the default.
@Suite(.enabled(if: MockLogind.isInstalled, "python3-dbusmock is not installed"))
struct LogindSourceTests {
    private func makeScene(_ logind: MockLogind, configuration: String = "session = background\n") throws -> Scene {
        try Scene(
            .daemon,
            configuration: configuration,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.bus.address]
        )
    }

    @Test func `programs of a locked or inactive session are in the background, and a person overrides that`() throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        try logind.addSession("9", user: 4_000_000)
        let scene = try makeScene(logind)
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind   live  1 fact: session 2 of user \(geteuid()) active\n")
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])

        try logind.setLocked("2", true)
        try scene.wait(for: ["\(observer.pid) background logind"])
        try logind.setLocked("2", false)
        try scene.wait(for: ["\(observer.pid) foreground default"])
        try logind.setActive("2", false)
        try scene.wait(for: ["\(observer.pid) background logind"])
        try scene.lifecycle("foreground", "\(observer.pid)")
        #expect(try scene.lines() == ["\(observer.pid) foreground person"])
        try scene.lifecycle("release")
        #expect(try scene.lines() == ["\(observer.pid) background logind"])
        // A request to lock is not a fact, and another user's session doesn't count.
        try logind.setActive("2", true)
        try logind.requestLock("2")
        try logind.setLocked("9", true)
        try scene.wait(for: ["\(observer.pid) foreground default"])
        // A later fact shows that these had no effect.
        try logind.prepareForSleep(true)
        try scene.waitForStatus("session 2 of user \(geteuid()) active; going to sleep")
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])
    }

    @Test func `without logind it keeps nobody in the background, and a new logind is asked again`() throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        let scene = try makeScene(logind)
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind   live")
        try logind.setLocked("2", true)
        try scene.wait(for: ["\(observer.pid) background logind"])
        try logind.kill()
        try scene.wait(for: ["\(observer.pid) foreground default"])
        try scene.waitForStatus("logind   off   2 facts: systemd-logind went away")
        try logind.restart()
        // It has no session yet, so the user's programs belong to none.
        try scene.waitForStatus("no session")
        try logind.addSession("3", user: geteuid())
        try scene.waitForStatus("session 3 of user")
        try logind.setLocked("3", true)
        try scene.wait(for: ["\(observer.pid) background logind"])
        // The bus itself goes away, and comes back with another logind.
        logind.bus.kill()
        try scene.waitForStatus("the system bus went away")
        try scene.wait(for: ["\(observer.pid) foreground default"])
        try logind.bus.restart()
        try logind.restart()
        try scene.waitForStatus("no session", timeout: .patience)
    }

    @Test func `observers keep their state when the agent is killed while the screen is locked`() throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        let scene = try makeScene(logind)
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind   live")
        try logind.setLocked("2", true)
        try scene.wait(for: ["\(observer.pid) background logind"])
        try scene.restartAgent()
        try scene.wait(for: ["\(observer.pid) background logind"])
        try logind.setLocked("2", false)
        try scene.wait(for: ["\(observer.pid) foreground default"])
    }

    @Test func `a thousand changes settle on the last`() throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        let scene = try makeScene(logind)
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind   live")
        for index in 1...1_000 { try logind.setLocked("2", !index.isMultiple(of: 2)) }
        try logind.setLocked("2", true)
        try scene.wait(for: ["\(observer.pid) background logind"])
    }

    @Test func `sleep and the session have the effects that the configuration gives them`() throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        let scene = try makeScene(logind, configuration: "session = ignore\nsleep = background\n")
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind   live")
        try logind.setLocked("2", true)
        try scene.waitForStatus("active, locked")
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])
        try logind.prepareForSleep(true)
        try scene.wait(for: ["\(observer.pid) background logind"])
        try logind.prepareForSleep(false)
        try scene.wait(for: ["\(observer.pid) foreground default"])
    }

    @Test func `a logind that fails to answer is asked again, and until then nothing is known`() throws {
        let logind = try MockLogind()
        let folder = try TemporaryFolder()
        let code = """
            import os
            if not os.path.exists('\(folder.path)/mended'):
                raise dbus.exceptions.DBusException('', name='org.freedesktop.DBus.Error.NoReply')
            ret = [('2', dbus.UInt32(\(geteuid())), 'user', 'seat0', dbus.ObjectPath('/org/freedesktop/login1/session/2'))]
            """
        try logind.addSession("2", user: geteuid())
        try logind.replace("ListSessions", "", "a(susso)", by: code)
        let scene = try makeScene(logind)
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind   off")
        try folder.write("", to: "mended")
        try scene.waitForStatus("session 2 of user \(geteuid()) active")
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])
    }

    @Test func `a lock that logind answers without a descriptor is not asked for at once`() throws {
        let logind = try MockLogind()
        let folder = try TemporaryFolder()
        let log = folder.path + "/log"
        try logind.replace("Inhibit", "ssss", "s", by: "open('\(log)', 'a').write('.')\nret = ''")
        let scene = try makeScene(logind)
        let observer = try start(
            productPath("notify-wait"),
            ["--address", scene.bus.address, "-v", "-f", "org.notifybus.system.willsleep"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "the observer is live")
        try scene.waitForStatus("logind   live")
        #expect(waitUntil { (try? readFile(log).isEmpty) == false })
        for number in 0..<20 { try logind.addSession("\(number)", user: geteuid()) }
        // At the beginning, and whenever everything is asked for anew.
        #expect(try readFile(log).count <= 25)
    }

    @Test func `a stranger on the system bus can't lock the screen`() throws {
        let logind = try MockLogind()
        try logind.addSession("2", user: geteuid())
        let scene = try makeScene(logind)
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind   live")
        let stranger = try RawBusClient(address: logind.bus.address)
        var body = RawBody()
        body.append("org.freedesktop.login1.Session")
        var change = RawBody()
        change.align(to: 8)
        change.append("LockedHint")
        change.append(signature: "b")
        change.append(UInt32(1))
        body.append(UInt32(change.bytes.count))
        body.align(to: 8)
        body.append(bytes: change.bytes)
        body.append(UInt32(0))
        for name in try logind.connectionNames() {
            try stranger.emitSignal(
                path: "/org/freedesktop/login1/session/2",
                interface: "org.freedesktop.DBus.Properties",
                member: "PropertiesChanged",
                destination: name,
                signature: "sa{sv}as",
                body: body.bytes
            )
        }
        try logind.prepareForSleep(true)
        try scene.waitForStatus("session 2 of user \(geteuid()) active; going to sleep")
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])
    }
}
