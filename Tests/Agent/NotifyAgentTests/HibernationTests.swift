// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The whole agent through a night: the clock that goes on while the machine sleeps jumps, as a library says that is
/// loaded before the C library. logind says as much as a test lets it.
@Suite(.enabled(if: isInstalled("cc"), "there is no C compiler"))
struct HibernationTests {
    /// A machine that can sleep.
    private final class Machine {
        let bus: PrivateBus
        let logind: AnsweringService
        private let folder: TemporaryFolder

        private static let manager = "org.freedesktop.login1.Manager"
        private static let path = "/org/freedesktop/login1"

        init(_ kind: BusKind) throws {
            (bus, folder) = (try PrivateBus(kind), try TemporaryFolder())
            logind = try AnsweringService(bus, ["org.freedesktop.login1"], EdgeTests.answers)
            try folder.write("", to: "hours")
            let source = """
                #define _GNU_SOURCE
                #include <sys/stat.h>
                #include <sys/syscall.h>
                #include <time.h>
                #include <unistd.h>
                /* The file has a byte for each hour that the machine has slept. */
                int clock_gettime(clockid_t clock, struct timespec *time) {
                    struct stat file;
                    int result = (int)syscall(SYS_clock_gettime, clock, time);
                    if (result == 0 && clock == CLOCK_BOOTTIME && stat("\(folder.path)/hours", &file) == 0)
                        time->tv_sec += file.st_size * 3600;
                    return result;
                }
                """
            try folder.write(source, to: "clock.c")
            let result = try run("cc", ["-shared", "-fPIC", "-o", folder.path + "/clock.so", folder.path + "/clock.c"])
            try #require(result.status == 0, "\(result.errorOutput)")
        }

        deinit { logind.end() }

        /// A path in `LD_PRELOAD` can't contain spaces.
        var environment: [String: String?] {
            ["DBUS_SYSTEM_BUS_ADDRESS": bus.address, "LD_PRELOAD": "clock.so", "LD_LIBRARY_PATH": folder.path]
        }

        /// It has slept for another hour.
        func sleep() throws {
            let result = try run("sh", ["-c", "printf x >>\"$0/hours\"", folder.path])
            try #require(result.status == 0)
        }

        func prepareForSleep(_ isAboutTo: Bool) throws {
            if isAboutTo { answer(isAboutTo: true) }
            var body = RawBody()
            body.append(UInt32(isAboutTo ? 1 : 0))
            try logind.emit(Machine.path, Machine.manager, "PrepareForSleep", "b", body)
        }

        func answer(isAboutTo: Bool) {
            logind.answer(
                "GetAll \(Machine.manager)",
                .properties(["PreparingForSleep": ("b", isAboutTo ? 1 : 0)])
            )
        }

        /// Says anything else.
        func say() throws {
            var body = RawBody()
            body.append("9")
            body.append(Machine.path + "/session/_39")
            try logind.emit(Machine.path, Machine.manager, "SessionRemoved", "so", body)
        }

        func setActive(_ isActive: Bool) throws {
            logind.answer("GetAll org.freedesktop.login1.Session", .properties(["Active": ("b", isActive ? 1 : 0)]))
            var body = RawBody()
            body.append("org.freedesktop.login1.Session")
            body.append(properties: ["Active": ("b", isActive ? 1 : 0)])
            body.append([])
            let interface = "org.freedesktop.DBus.Properties"
            try logind.emit(Machine.path + "/session/2", interface, "PropertiesChanged", "sa{sv}as", body)
        }
    }

    @Test(arguments: busKinds)
    func `with sleep = background a program is deaf while the machine sleeps, and hears afterwards`(
        kind: BusKind
    ) throws {
        let machine = try Machine(kind)
        let scene = try Scene(
            kind,
            configuration: "session = ignore\nsleep = background\n",
            environment: machine.environment
        )
        let observer = try scene.startObserver()
        try scene.waitForStatus("logind live")
        let center = NotifyCenter(bus: .address(scene.bus.address))
        func post() throws {
            try center.postOnceConnected("com.example.scene")
            try center.synchronize(timeout: .patience)
        }
        try scene.wait(for: ["\(observer.pid) foreground default"])
        for round in 1...3 {
            try post()
            #expect(try observer.waitForOutputLines(round).count == round)
            try machine.prepareForSleep(true)
            try scene.wait(for: ["\(observer.pid) background logind"])
            try post()
            // A hibernation, after which it does not say that it is over, and goes on answering that it is about to begin.
            try machine.sleep()
            try machine.say()
            try scene.wait(for: ["\(observer.pid) foreground default"])
        }
        try post()
        #expect(try observer.waitForOutputLines(4).count == 4)
    }

    /// As in a frozen user.slice: systemd thaws it after it has sent both signals.
    @Test(arguments: busKinds)
    func `an agent that had no turn between true and false posts once that the machine has woken`(kind: BusKind) throws
    {
        let machine = try Machine(kind)
        let scene = try EventScene(kind, environment: machine.environment)
        let sleep = try scene.observe("org.notifybus.system.willsleep")
        let wake = try scene.observe("org.notifybus.system.didwake")
        let active = try scene.observe("org.notifybus.session.active")
        #expect(try waitUntil { try scene.state(of: "org.notifybus.session.active") == 1 })
        for round in 1...3 {
            try scene.pause()
            try machine.prepareForSleep(true)
            try machine.sleep()
            machine.answer(isAboutTo: false)
            try machine.prepareForSleep(false)
            kill(scene.process, SIGCONT)
            #expect(wake.heard.wait(for: round))
            // A later fact shows that there is nothing more to come.
            try machine.setActive(round.isMultiple(of: 2))
            #expect(active.heard.wait(for: round))
            #expect(try scene.state(of: "org.notifybus.system.willsleep") == 0)
            #expect([wake.heard.value, sleep.heard.value] == [round, 0])
        }
        for each in [sleep.observation, wake.observation, active.observation] { each.cancel() }
    }
}
