// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The kernel itself, in namespaces of the agent's own.
@Suite(.enabled(if: EventScene.mayUnshare, "needs root and mount namespaces"))
struct KernelEventTests {
    @Test(arguments: anyBusKind())
    func `a time zone set as timedated does it is one post each time`(kind: BusKind) throws {
        let scene = try EventScene(kind, ["--mount"])
        try scene.shell("mkdir etc; ln -s /usr/share/zoneinfo/UTC etc/localtime")
        try scene.inside("-m", script: "mount --bind \(shellWord(scene.folder.path))/etc /etc")
        let (heard, observation) = try scene.observe("com.apple.system.timezone")
        for (index, zone) in ["Europe/Berlin", "Asia/Tokyo", "UTC", "Europe/Berlin"].enumerated() {
            try scene.shell("ln -s ../usr/share/zoneinfo/\(zone) etc/.new; mv -T etc/.new etc/localtime")
            #expect(heard.wait(for: index + 1), "\(zone)")
        }
        // Changes to files beside it are not posted.
        try scene.shell(": >etc/other; chmod 600 etc/other")
        try scene.shell("ln -s ../usr/share/zoneinfo/UTC etc/.new; mv -T etc/.new etc/localtime")
        #expect(heard.wait(for: 5))
        #expect(heard.value == 5)
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `each change of the host name is one post`(kind: BusKind) throws {
        let scene = try EventScene(kind, ["--uts"])
        let (heard, observation) = try scene.observe("com.apple.system.hostname")
        for (index, name) in ["one", "two", "two", "three"].enumerated() {
            try scene.inside("-u", script: "hostname \(name)")
            #expect(heard.wait(for: [1, 2, 2, 3][index]))
        }
        #expect(heard.value == 3)
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `mounting, changing and unmounting a file system is one post each`(kind: BusKind) throws {
        let scene = try EventScene(kind, ["--mount"])
        let mounts = try scene.observe("com.apple.system.kernel.mount")
        let changes = try scene.observe("com.apple.system.kernel.mountupdate")
        let unmounts = try scene.observe("com.apple.system.kernel.unmount")
        let place = shellWord(scene.folder.path)
        for round in 1...3 {
            try scene.inside("-m", script: "mount -t tmpfs none \(place)")
            #expect(mounts.heard.wait(for: round))
            try scene.inside("-m", script: "mount -o remount,ro \(place)")
            #expect(changes.heard.wait(for: round))
            try scene.inside("-m", script: "umount \(place)")
            #expect(unmounts.heard.wait(for: round))
        }
        #expect([mounts.heard.value, changes.heard.value, unmounts.heard.value] == [3, 3, 3])
        for observation in [mounts.observation, changes.observation, unmounts.observation] { observation.cancel() }
    }

    @Test(.enabled(if: isInstalled("ip"), "iproute2 is not installed"), arguments: anyBusKind())
    func `a link that comes up with an address and a route is one post; a new MTU is none`(kind: BusKind) throws {
        let scene = try EventScene(kind, ["--net"])
        let (heard, observation) = try scene.observe("com.apple.system.config.network_change")
        let alias = try scene.observe("com.apple.system.config.network_change.nwi")
        #expect(try scene.state(of: "com.apple.system.config.network_change") == 0)
        // These are one change because they come shortly one after the other; a busy machine could pause in between.
        try scene.pause()
        try scene.inside(
            "-n",
            script: """
                ip -batch - <<END
                link add veth0 type veth peer name veth1
                address add 192.0.2.1/24 dev veth0
                link set veth1 up
                link set veth0 up
                route add default via 192.0.2.2
                END
                # The kernel reports the carrier later, as it pleases.
                until ip -oneline link show dev veth0 | grep -q " state UP "; do sleep 0.05; done
                """
        )
        kill(scene.process, SIGCONT)
        #expect(heard.wait(for: 1) && alias.heard.wait(for: 1))
        #expect(try scene.state(of: "com.apple.system.config.network_change") == 5)
        // The next change that counts comes after the one that doesn't.
        try scene.inside("-n", script: "ip link set veth0 mtu 1400")
        try passTime("400ms")
        try scene.inside("-n", script: "ip route del default")
        #expect(heard.wait(for: 2) && alias.heard.wait(for: 2))
        #expect(heard.value == 2)
        #expect(try scene.state(of: "com.apple.system.config.network_change.nwi") == 4)
        observation.cancel()
        alias.observation.cancel()
    }

    @Test(.enabled(if: isInstalled("ip"), "iproute2 is not installed"), arguments: anyBusKind())
    func `containers that come and go change neither addresses nor routes, and are no post`(kind: BusKind) throws {
        let scene = try EventScene(kind, ["--net"])
        let (heard, observation) = try scene.observe("com.apple.system.config.network_change")
        for number in 1...3 {
            try scene.inside(
                "-n",
                script: """
                    ip link add c\(number) type veth peer name p\(number)
                    ip link set c\(number) up
                    ip link set p\(number) up
                    """
            )
            // The source looks once the changes pause.
            try passTime("500ms")
            try scene.inside("-n", script: "ip link del c\(number)")
            try passTime("500ms")
        }
        try scene.inside(
            "-n",
            script: "ip link add d0 type veth peer name d1; ip addr add 192.0.2.1/24 dev d0; ip link set d0 up"
        )
        #expect(heard.wait(for: 1))
        #expect(heard.value == 1)
        observation.cancel()
    }

    /// What containers find: Docker's `-v file:file`, a subPath, their own resolv.conf.
    @Test(arguments: anyBusKind())
    func `each change of a file that is mounted from elsewhere is one post`(kind: BusKind) throws {
        let scene = try EventScene(kind, ["--mount"], configuration: "file = com.example.one FOLDER/one\n")
        let folder = shellWord(scene.folder.path)
        try scene.shell("mkdir elsewhere; : >elsewhere/one; echo nameserver 192.0.2.1 >elsewhere/resolv.conf; : >one")
        try scene.inside("-m", script: "mount --bind \(folder)/elsewhere/one \(folder)/one")
        try scene.inside("-m", script: "mount --bind \(folder)/elsewhere/resolv.conf /etc/resolv.conf")
        let one = try scene.observe("com.example.one")
        let dns = try scene.observe("com.apple.system.config.network_change.dns")
        try scene.waitUntilLive("com.example.one")
        for round in 1...3 {
            try scene.shell("echo \(round) >elsewhere/one")
            #expect(one.heard.wait(for: round))
            try scene.shell("echo nameserver 192.0.2.\(round + 1) >elsewhere/resolv.conf")
            #expect(dns.heard.wait(for: round))
        }
        try passTime("200ms")
        #expect(one.heard.value == 3 && dns.heard.value == 3)
        for observation in [one.observation, dns.observation] { observation.cancel() }
    }

    @Test(arguments: anyBusKind())
    func `a folder that is mounted after the watch began is one post, each change in it, and its end`(kind: BusKind)
        throws
    {
        let scene = try EventScene(kind, ["--mount"], configuration: "file = com.example.one FOLDER/stick/one\n")
        let folder = shellWord(scene.folder.path)
        try scene.shell("mkdir stick disk; echo before >disk/one")
        let (heard, observation) = try scene.observe("com.example.one")
        try scene.waitUntilLive("com.example.one")
        var expected = 0
        for round in 1...3 {
            // It is there, is written, by another name than this, and is gone.
            for (namespaces, script) in [
                (["-m"], "mount --bind \(folder)/disk \(folder)/stick"), ([], "echo \(round) >disk/one"),
                (["-m"], "umount \(folder)/stick"),
            ] {
                if namespaces.isEmpty { try scene.shell(script) } else { try scene.inside("-m", script: script) }
                expected += 1
                #expect(heard.wait(for: expected), "\(script)")
                // So that no two changes are one.
                try passTime("300ms")
                #expect(heard.value == expected, "\(script)")
            }
        }
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `the agent has three inotify instances at most`(kind: BusKind) throws {
        let scene = try EventScene(kind, configuration: "file = com.example.one FOLDER/one\n")
        let names: [NotifyName] = [
            "com.example.one", "com.apple.system.timezone", "com.apple.system.config.network_change.dns",
            "com.apple.system.info:/etc/hosts", "org.notifybus.system.locale", "org.notifybus.system.packages",
        ]
        let all = try names.map { try scene.observe($0) }
        let instances = scene.descriptors.count { $0.contains("inotify") }
        #expect((1...3).contains(instances), "\(instances)")
        for each in all { each.observation.cancel() }
    }

    @Test(.enabled(if: access("/proc/pressure/memory", W_OK) == 0, "the kernel measures no memory pressure"))
    func `watching memory pressure causes no wake-ups`() throws {
        let scene = try EventScene(.daemon)
        let (_, observation) = try scene.observe("org.notifybus.system.memory")
        #expect(try scene.status().contains("org.notifybus.system.memory  live"))
        #expect(try scene.state(of: "org.notifybus.system.memory") <= 2)
        observation.cancel()
    }

    @Test(.enabled(if: MemoryGroup.isPossible, "that takes root and control groups that limit memory"))
    func `a program that waits for memory raises the level, which falls once the program has ended`() throws {
        let scene = try EventScene(.daemon)
        let (heard, observation) = try scene.observe("org.notifybus.system.memory")
        let group = try MemoryGroup(in: scene.folder.path)
        // The level is that of the whole machine, so it may also reach 2 on the way.
        #expect(try waitUntil { try scene.state(of: "org.notifybus.system.memory") >= 1 })
        #expect(heard.wait(for: 1))
        try group.end()
        #expect(try waitUntil { try scene.state(of: "org.notifybus.system.memory") == 0 })
        #expect(heard.wait(for: 2))
        observation.cancel()
    }
}

/// The sources that follow files, and what they cost without observers.
@Suite
struct EventTests {
    private static let files = "file = com.example.one FOLDER/one\nfile = com.example.two FOLDER/none/two\n"

    @Test(arguments: anyBusKind())
    func `a file's name is posted once for each change, and the file may appear along with its folder`(
        kind: BusKind
    ) throws {
        let scene = try EventScene(kind, configuration: Self.files)
        let (one, first) = try scene.observe("com.example.one")
        let (two, second) = try scene.observe("com.example.two")
        for (index, script) in [": >one", "echo x >>one", "sed -i s/x/y/ one", "rm one"].enumerated() {
            try scene.shell(script)
            #expect(one.wait(for: index + 1), "\(script)")
        }
        try scene.shell("mkdir .none; : >.none/two; mv .none none")
        #expect(two.wait(for: 1))
        #expect(one.value == 4 && two.value == 1)
        first.cancel()
        second.cancel()
    }

    @Test(arguments: anyBusKind())
    func `an agent that is killed posts again when it is back`(kind: BusKind) throws {
        let scene = try EventScene(kind, configuration: Self.files)
        let (one, observation) = try scene.observe("com.example.one")
        kill(scene.process, SIGKILL)
        let next = try start(
            productPath("notify-agent"),
            ["--address", scene.bus.address, "--config", "/dev/stdin", "--replace"],
            environment: withoutDesktop
        )
        try next.writeInput(Self.files.replacing("FOLDER", with: scene.folder.path))
        next.closeInput()
        try next.waitForErrorOutput(containing: "ready")
        try scene.center.synchronize(timeout: .patience)
        // The observer has registered again once the agent lists its name.
        #expect(try waitUntil { try scene.status().contains("com.example.one  live  wanted by 1") })
        try scene.shell(": >one")
        #expect(one.wait(for: 1))
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `nothing is open without observers, and everything is closed a while after the last one leaves`(kind: BusKind)
        throws
    {
        let scene = try EventScene(kind, configuration: Self.files)
        _ = try scene.status()
        let threads = threadCount(of: scene.process)
        let (_, other) = try scene.observe("com.example.other")
        // The sources have been started as well, and have found nothing here.
        #expect(waitUntil { threadCount(of: scene.process) <= threads })
        let before = scene.descriptors
        let names: [NotifyName] = [
            "com.apple.system.timezone", "com.apple.system.clock_set", "com.apple.system.hostname", "com.example.one",
            "com.apple.system.kernel.mount", "com.apple.system.config.network_change",
        ]
        let observations = try names.map { try scene.observe($0).observation }
        #expect(scene.descriptors.count >= before.count + 4)
        #expect(threadCount(of: scene.process) > threads)
        // Waiting sources don't wake the agent.
        #expect(try sleeps(scene.process, for: "3s"))
        for observation in observations { observation.cancel() }
        #expect(waitUntil { threadCount(of: scene.process) <= threads })
        #expect(waitUntil { scene.descriptors == before })
        other.cancel()
    }

    @Test(arguments: anyBusKind())
    func `only the agent sets the state of an event, and a pinned state stays without observers`(kind: BusKind) throws {
        let scene = try EventScene(kind, configuration: "set = com.example.level 7\nset = com.example.zero\n")
        let (_, observation) = try scene.observe("com.apple.system.timezone")
        let refused = try run(
            productPath("notify-state"),
            ["--address", scene.bus.address, "set", "com.apple.system.timezone", "1"]
        )
        #expect(refused.status == 1 && refused.errorOutput.contains("Only the agent can set the state"))
        #expect(try scene.state(of: "com.apple.system.timezone") == 0)
        observation.cancel()
        #expect(try scene.state(of: "com.example.level") == 7 && scene.state(of: "com.example.zero") == 0)
        let set = try run(
            productPath("notify-state"),
            ["--address", scene.bus.address, "set", "com.example.level", "18446744073709551615"]
        )
        #expect(set.status == 0, "\(set.errorOutput)")
        let watcher = try scene.observe("com.example.level")
        #expect(try scene.state(of: "com.example.level") == .max)
        watcher.observation.cancel()
        try scene.center.synchronize(timeout: .patience)
        #expect(try scene.state(of: "com.example.level") == .max)
    }

    @Test func `a thousand files wake nobody while nothing happens`() throws {
        let lines = (0..<1_024).map { "file = com.example.many.\($0 % 512) FOLDER/\($0)/file\n" }.joined()
        let scene = try EventScene(.daemon, configuration: lines)
        let observations = try (0..<512).map {
            try scene.center.addObserver(for: NotifyName("com.example.many.\($0)"), timeout: .seconds(25)) { _ in }
        }
        #expect(try waitUntil { try scene.status().contains("com.example.many.511  live") })
        #expect(try sleeps(scene.process, for: "3s"))
        for observation in observations { observation.cancel() }
    }

    @Test func `an invalid line is found, and what is wrong with it`() throws {
        for (line, fault) in [
            ("file = com.example.a", "is not a name followed by a path"),
            ("file = com.example.a relative", "begins with / or ~/"),
            ("file = self.a /tmp/a", "never leaves its process"),
            ("file = user.uid.4294967290 /tmp/a", "belongs to another user"),
            ("set = com.example.a -1", "is not a number"), ("set =", "is not a name"),
            ("set = com.apple.system.hostname 7", "is an event"), ("events = some", "use asked or none"),
            ("ignore = nothing", "timezone"),
        ] where !(line.contains("user.uid") && geteuid() == 0) {
            let check = ["--check", "--config", "/dev/stdin"]
            let result = try run(productPath("notify-agent"), check, input: line + "\n")
            let said = result.output + result.errorOutput
            #expect(result.status == 1 && said.contains("/dev/stdin:1: ") && said.contains(fault), "\(line): \(said)")
        }
    }
}
