// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

@Suite struct IdentityTests {
    @Test(arguments: [
        ("app-gnome-org.gnome.Maps-1234.scope", "org.gnome.Maps"),
        ("app-org.gnome.Maps-1234.scope", "org.gnome.Maps"),
        ("app-flatpak-org.example.Two\\x2dParts-99.scope", "org.example.Two-Parts"),
        ("app-org.kde.kate@8a7b.service", "org.kde.kate"),
        ("app-KDE-org.kde.kate.service", "org.kde.kate"),
        ("app-dbus-:1.2-org.example@0.service", nil),
        ("app-.scope", nil), ("app-x.scope", nil), ("app.service", nil), ("session-2.scope", nil),
        ("app-bad\\x2-1.scope", nil), ("app-bad\\x00-1.scope", nil), ("app-a-b-c-d-1.scope", nil),
    ])
    func `a unit names its application`(unit: String, id: String?) {
        #expect(AppIdentity.application(ofUnit: unit) == id)
    }

    @Test func `a connection whose process the bus does not know is refused, with the reason`() {
        // What dbus 1.16 reports once the process has ended.
        let facts: BusValue = .dictionary([("UnixUserID", .uint32(1_000))])
        #expect(Identity.credentials(in: .success([facts])) == nil)
        #expect(Identity.credentials(in: .failure(.failed("Could not determine the process"))) == nil)
        let fault = BusFault(Refusal.unidentified(":1.7"))
        #expect(fault.name == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(fault.message.contains(":1.7 has ended"))
    }

    @Test func `the innermost unit of a cgroup counts`() {
        let path = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-org.gnome.Maps-7.scope/inner"
        #expect(AppIdentity.application(ofCgroup: path) == "org.gnome.Maps")
        #expect(AppIdentity.application(ofCgroup: "/") == nil)
    }

    @Test func `a user who may make cgroups in that of a service makes no other service of it`() {
        let path = "/system.slice/web.service/inner/backup.service"
        #expect(AppIdentity.unit(ofCgroup: path)?.name == "backup.service")
        #expect(AppIdentity.unit(ofCgroup: path, isOutermost: true)?.name == "web.service")
        let session = "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service"
        #expect(AppIdentity.unit(ofCgroup: session)?.isOfUser == true)
        #expect(AppIdentity.unit(ofCgroup: session, isOutermost: true)?.name == "user@1000.service")
    }

    @Test func `cgroups are found on pure and on hybrid machines`() {
        #expect(AppIdentity.cgroups(in: "0::/a:b\n").unified == "/a:b")
        let hybrid = AppIdentity.cgroups(in: "4:cpu,cpuacct:/x\n1:name=systemd:/user.slice\n0::/y\n")
        #expect(hybrid.unified == "/y" && hybrid.systemd == "/user.slice")
    }

    @Test func `a sandbox is recognized by what a program in it can't change`() {
        let flatpak = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-flatpak-org.gnome.Maps-7.scope"
        #expect(AppIdentity.isFlatpak(cgroup: flatpak) && AppIdentity.isFlatpak(cgroup: flatpak + "/inner"))
        #expect(!AppIdentity.isFlatpak(cgroup: "/app.slice/app-gnome-flatpak-7.scope"))
        // Each instance of an application has a scope and a proxy of its own; together they are one.
        let instances = ["", "8"].map { flatpak.replacing(".scope", with: "\($0).scope") + "/inner" }
        for instance in instances {
            #expect(AppIdentity.sandboxedApplication(label: "", cgroups: [instance]) == "org.gnome.Maps")
        }
        #expect(AppIdentity.sandboxedApplication(label: "snap.firefox.firefox (enforce)", cgroups: []) == "firefox")
        #expect(AppIdentity.sandboxedApplication(label: "", cgroups: ["/app.slice/app-gnome-editor-7.scope"]) == nil)
        #expect(AppIdentity.snap(inLabel: "snap.firefox.firefox (enforce)") == "firefox")
        for label in ["snap.code.code (complain)", "unconfined", "firefox (enforce)", ""] {
            #expect(AppIdentity.snap(inLabel: label) == nil, "\(label)")
        }
    }

    @Test func `the mount of the version 2 hierarchy is found`() throws {
        let text = """
            24 1 0:5 / /proc rw - proc proc rw
            30 24 0:26 / /sys/fs/my\\040group rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw
            """
        let mount = try #require(CgroupMount(mountinfo: text))
        #expect(mount.path == "/sys/fs/my group")
        #expect(mount.folder(of: "/a/b") == "/sys/fs/my group/a/b")
        #expect(mount.folder(of: "/a/../b") == nil)
        let part = try #require(CgroupMount(mountinfo: "1 2 0:1 /part /m rw - cgroup2 x rw"))
        #expect(part.folder(of: "/part/a") == "/m/a")
        #expect(part.folder(of: "/particular") == nil)
    }

    @Test func `the mount is found among thousands, whatever bytes the others contain`() throws {
        let folder = try TemporaryFolder()
        let script = """
            for _ in $(seq 2000); do printf '31 24 0:27 / /mnt/na\\357ve rw - ext4 x rw\\n'; done
            printf '30 24 0:26 / /sys/fs/cgroup rw - cgroup2 x rw\\n'
            """
        try #require(try run("sh", ["-c", "{ \(script); } >\"$0\"", folder.path + "/mounts"]).status == 0)
        #expect(CgroupMount(inFile: folder.path + "/mounts")?.path == "/sys/fs/cgroup")
    }

    /// The kernel cuts the name after 15 bytes.
    @Test func `a program is known whatever its name is`() throws {
        let scene = try Scene(.daemon)
        let folder = try TemporaryFolder()
        let program = folder.path + "/программа12"
        try #require(symlink(try productPath("notify-wait"), program) == 0)
        let observer = try start(
            python,
            ["-c", "import os, sys; os.execv(sys.argv[1], ['notify-wait'] + sys.argv[2:])", program]
                + ["--address", scene.bus.address, "-v", "-f", "com.example.scene"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "the observer is live")
        #expect(try scene.lines() == ["\(observer.pid) foreground default"])
    }

    @Test(arguments: ["1 (a b) T 2", "1 (x) (y)) T 2"])
    func `the state is read whatever the program's name contains`(text: String) {
        #expect(ProcessFolder.state(inStat: Array(text.utf8)) == UInt8(ascii: "T"))
    }

    @Test func `what proc says about this process is read`() throws {
        guard let folder = ProcessFolder(of: getpid()) else { throw TestSupportError("There is no /proc.") }
        let (users, ticks, state) = (folder.users, folder.startTime, folder.state)
        #expect(users == ProcessFolder.Users(real: getuid(), effective: geteuid(), saved: geteuid()))
        #expect(state.map { "RSD".utf8.contains($0) } == true && (ticks ?? 0) > 0)
        let status = "Name:\tx\nUid:\t1000\t0\t0\t0\n"
        let other = try #require(ProcessFolder.users(inStatus: status))
        #expect(other == ProcessFolder.Users(real: 1_000, effective: 0, saved: 0))
        #expect(!other.areAll(1_000) && !other.areAll(0))
        let isNobody = ProcessFolder(of: 0) == nil
        #expect(isNobody)
    }

    @Test func `no handle is given out for a process that has ended, nor for another user's`() throws {
        let ended = try start("cat")
        let pidfd = linux_pidfd_open(ended.pid)
        try #require(pidfd >= 0)
        ended.closeInput()
        _ = try ended.wait()
        #expect(throws: ProcessHandle.Doubt.gone) { try ProcessHandle.open(ended.pid, user: geteuid()).get() }
        // Not even if the bus gives its descriptor and another process has its number by now.
        #expect(throws: ProcessHandle.Doubt.gone) {
            try ProcessHandle.open(getpid(), pidfd: pidfd, user: geteuid()).get()
        }
        // Nor if the descriptor is of another process than the number.
        let parent = linux_pidfd_open(getppid())
        #expect(throws: ProcessHandle.Doubt.elsewhere) {
            try ProcessHandle.open(getpid(), pidfd: parent, user: geteuid()).get()
        }
        let given = try ProcessHandle.open(getpid(), pidfd: linux_pidfd_open(getpid()), user: geteuid()).get().0
        #expect(given.pidfd >= 0 && given.state != nil)
        #expect(throws: ProcessHandle.Doubt.belongs(to: geteuid())) {
            try ProcessHandle.open(getpid(), user: geteuid() + 1).get()
        }
        let own = try ProcessHandle.open(getpid(), user: geteuid()).get().0
        #expect(own.state != nil && own.mayBeStopped(by: geteuid()) && !own.mayBeStopped(by: geteuid() + 1))
    }

    @Test func `targets are read`() {
        #expect(Target("pid:12") == .process(12))
        #expect(Target(":1.5") == .connection(":1.5"))
        #expect(Target("app:org.gnome.Maps") == .application("org.gnome.Maps"))
        for wrong in ["pid:0", "pid:+1", "pid:99999999999", ":", "app:", "x"] { #expect(Target(wrong) == nil) }
    }

    @Test func `a login session is found in the path of a cgroup, and nowhere else`() {
        let cases: [(String, String?)] = [
            ("/user.slice/user-1000.slice/session-2.scope", "2"),
            ("/user.slice/user-1000.slice/session-c1.scope/x", "c1"),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.example.A-1.scope", nil),
            ("/user.slice/user-1000.slice/user@1000.service/session.slice/a.service", nil), ("/session-.scope", nil),
            ("/session-2.slice", nil), ("/", nil), ("", nil),
        ]
        for (path, id) in cases { #expect(AppIdentity.session(ofCgroup: path) == id, "\(path)") }
    }
}
