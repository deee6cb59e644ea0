// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Processes that are stopped while they observe.
struct StoppedTests {
    private static let names = (0..<10).map { "com.example.stop.\($0)" }

    /// A notify-wait that prints ten names, or what it is told to.
    private func startObserver(
        _ agent: AgentBus,
        of subjects: [String] = names,
        in cgroup: Cgroup? = nil
    ) throws -> RunningCommand {
        let command = try [productPath("notify-wait"), "--address", agent.bus.address, "-f", "-v"] + subjects
        // The program is in its cgroup from the start: the shell's last act is to exec it.
        let entry = cgroup.map { "echo $$ >'\($0.path)/cgroup.procs' && " } ?? ""
        let observer = try start(
            "/bin/sh",
            ["-c", entry + "exec \"$@\"", "sh"] + command,
            environment: ["NOTIFY_SOCKET": nil]
        )
        _ = try observer.waitForErrorOutput(containing: "live", timeout: .patience)
        return observer
    }

    @Test(arguments: busKinds)
    func `a process stopped from outside harms nobody, and misses no name`(kind: BusKind) throws {
        // Had the bus to keep them for the stopped process, it would grow by more than it may.
        try post(isLongRun ? 500_000 : 25_000, toStoppedObserverOf: StoppedTests.names, on: kind)
    }

    @Test(arguments: busKinds)
    func `a process that observes a prefix and is stopped from outside harms nobody`(kind: BusKind) throws {
        try post(25_000, toStoppedObserverOf: ["com.example.stop.*"], on: kind)
    }

    /// Posts five names again and again while an observer of ten is stopped.
    private func post(_ count: Int, toStoppedObserverOf subjects: [String], on kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent, of: subjects)
        let bystander = agent.makeCenter()
        let names = try StoppedTests.names.map { try NotifyName($0) }
        let heard = Counter()
        let observation = try bystander.addObserver(matching: .names(names), timeout: .seconds(25)) { _ in heard.add() }
        let poster = agent.makeCenter()
        try poster.postOnceConnected(names[9])
        _ = try observer.waitForOutputLines(1, timeout: .patience)

        observer.send(signal: SIGSTOP)
        #expect(waitUntil { processState(observer.pid) == "T" })
        // Posted before the agent can have noticed: the bus queues these, and they must not be lost.
        for name in names[0..<3] { try poster.postOnceConnected(name) }
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        // The bus never has to keep more than this for those who hear these posts.
        for number in 0..<1_500 { try poster.postOnceConnected(names[number % 5]) }
        try #require(heard.wait(for: 1_504, timeout: .patience))
        _ = try agent.list()
        let before = agent.bus.residentBytes
        for number in 0..<count {
            try poster.postOnceConnected(names[number % 5])
            // The bus's queues for those that hear these posts don't count: the bystander, and the agent, which hears
            // each post of a prefix that it holds.
            if number % 500 == 499 { try #require(heard.wait(for: number + 1_004, timeout: .patience)) }
            if number % 1_000 == 999 { _ = try agent.list() }
        }
        try poster.synchronize(timeout: .patience)
        let growth = agent.bus.residentBytes - before
        #expect(growth < 3 << 20, "the bus grew by \(growth) bytes")
        // The bystander and the poster are connected.
        let so = heard.value
        try poster.postOnceConnected(names[9])
        #expect(heard.wait(for: so + 1, timeout: .patience))

        observer.send(signal: SIGCONT)
        // 9 before, then 0 to 4 and 9 once each; then it continues to hear posts.
        _ = try observer.waitForOutputLines(7, timeout: .patience)
        try poster.postOnceConnected(names[7])
        let lines = try observer.waitForOutputLines(8, timeout: .patience)
        #expect(lines.last == "com.example.stop.7")
        #expect(lines[1..<7].sorted() == [0, 1, 2, 3, 4, 9].map { names[$0].string })
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `an agent whose observers do nothing is not woken, but still notices a stop`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent)
        // It checks a new process a few times, once a second or, on a busy machine, somewhat later.
        #expect(try sleeps(agent.agentProcess, for: "3s"))

        let poster = agent.makeCenter()
        for round in 1...2 {
            observer.send(signal: SIGSTOP)
            #expect(waitUntil { processState(observer.pid) == "T" })
            try poster.postOnceConnected("com.example.stop.1")
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
            observer.send(signal: SIGCONT)
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == false })
            // If it were stopped before it has heard the name, it would hear it once for both.
            let lines = try observer.waitForOutputLines(round, timeout: .patience)
            #expect(lines == Array(repeating: "com.example.stop.1", count: round))
        }
        // Traffic alone is no reason to check more than once a second.
        for _ in 0..<100 { try poster.postOnceConnected("com.example.stop.2") }
        _ = try observer.waitForOutputLines(102, timeout: .patience)
    }

    @Test(.enabled(if: Cgroup.isUsable, "needs a cgroup v2 hierarchy that this user may write"), arguments: busKinds)
    func `a process frozen from outside misses no name`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let cgroup = try Cgroup()
        let observer = try startObserver(agent, in: cgroup)
        let names = try (0..<10).map { try NotifyName("com.example.stop.\($0)") }
        let poster = agent.makeCenter()
        cgroup.freeze()
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        for number in 0..<10_000 { try poster.postOnceConnected(names[number % 4]) }
        try poster.synchronize(timeout: .patience)
        cgroup.thaw()
        let lines = try observer.waitForOutputLines(4, timeout: .patience)
        #expect(lines.sorted() == names[0..<4].map(\.string))
        try poster.postOnceConnected(names[7])
        #expect(try observer.waitForOutputLines(5, timeout: .patience).last == "com.example.stop.7")
    }

    @Test(arguments: busKinds)
    func `a process that is stopped while its names are delivered hears them all`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent, of: ["com.example.many.*"])
        let poster = agent.makeCenter()
        let names = try (0..<12_000).map { try NotifyName("com.example.many.\($0)") }
        try agent.set("pid:\(observer.pid)", .suspended)
        for (number, name) in names.enumerated() {
            try poster.postOnceConnected(name)
            if number % 4_000 == 3_999 { try poster.synchronize(timeout: .patience) }
        }
        try #require(
            waitUntil(timeout: .patience) {
                (try? agent.list().first { $0["pid"]?.uint32 == UInt32(observer.pid) }?["pending"]?.uint32) == 12_000
            }
        )
        try agent.set("pid:\(observer.pid)", .foreground)
        // Three calls are in flight, and it can't have read them all.
        observer.send(signal: SIGSTOP)
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        observer.send(signal: SIGCONT)
        var lines: Set<String> = []
        try #require(
            try waitUntil(timeout: .patience) {
                lines = Set(try observer.waitForOutputLines(names.count, timeout: .patience))
                return lines.count == names.count
            },
            "\(lines.count) of \(names.count) names"
        )
    }

    @Test(arguments: busKinds)
    func `a process that is stopped and suspended while its names are delivered hears them all on resume`(
        kind: BusKind
    ) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent, of: ["com.example.many.*"])
        let poster = agent.makeCenter()
        let names = try (0..<4_000).map { try NotifyName("com.example.many.\($0)") }
        try agent.set("pid:\(observer.pid)", .suspended)
        for name in names { try poster.postOnceConnected(name) }
        try poster.synchronize(timeout: .patience)
        observer.send(signal: SIGSTOP)
        #expect(waitUntil { processState(observer.pid) == "T" })
        // It stands still: these are answered when it has been parked, or late.
        _ = try agent.trySetting("pid:\(observer.pid)", .foreground)
        _ = try agent.trySetting("pid:\(observer.pid)", .suspended)
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        try poster.postOnceConnected("com.example.many.last")
        try poster.synchronize(timeout: .patience)
        observer.send(signal: SIGCONT)
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == false })
        try agent.set("pid:\(observer.pid)", .foreground)
        let lines = Set(try observer.waitForOutputLines(names.count + 1, timeout: .patience))
        #expect(lines == Set(names.map(\.string) + ["com.example.many.last"]))
    }

    @Test(arguments: busKinds)
    func `notify-wait says that it was resumed, not that the bus went away`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent, of: ["com.example.stop"])
        for round in 1...2 {
            observer.send(signal: SIGSTOP)
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
            observer.send(signal: SIGCONT)
            try observer.waitForErrorOutput(
                containing: String(repeating: "notify-wait: resumed\n", count: round),
                timeout: .patience
            )
        }
        // A bus that does go away is still reported.
        agent.bus.kill()
        let said = try observer.waitForErrorOutput(containing: "the bus went away", timeout: .patience)
        #expect(said.split(separator: "\n").filter { $0.contains("the bus") }.count == 1, "\(said)")
    }

    @Test(arguments: busKinds)
    func `a post whose sender is being checked when its observer is stopped is heard`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let owned = try NotifyName("user.uid.\(getuid()).held")
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-f", "-v", "user.uid.*", "com.example.stop.*"],
            environment: ["NOTIFY_SOCKET": nil]
        )
        _ = try observer.waitForErrorOutput(containing: "live", timeout: .patience)
        let (stranger, poster) = (agent.makeCenter(), agent.makeCenter())
        // The agent must not park it yet.
        kill(agent.agentProcess, SIGSTOP)
        #expect(waitUntil { processState(agent.agentProcess) == "T" })
        observer.send(signal: SIGSTOP)
        #expect(waitUntil { processState(observer.pid) == "T" })
        try stranger.post(owned)
        try stranger.synchronize(timeout: .patience)
        try poster.postOnceConnected("com.example.stop.1")
        try poster.synchronize(timeout: .patience)
        // dbus-broker may answer before it has written to the observer's socket. It has when it answers anybody again: each
        // socket gets a turn.
        let witness = try RawBusClient(address: agent.bus.address)
        for _ in 0..<2 { try witness.callBus("GetId") }
        // The observer reads both, and asks the bus who the stranger is; the answer comes when it stands still again.
        agent.bus.stop()
        observer.send(signal: SIGCONT)
        #expect(try observer.waitForOutputLines(1, timeout: .patience) == ["com.example.stop.1"])
        observer.send(signal: SIGSTOP)
        #expect(waitUntil { processState(observer.pid) == "T" })
        kill(agent.agentProcess, SIGCONT)
        agent.bus.resume()
        try poster.postOnceConnected("com.example.stop.2")
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        observer.send(signal: SIGCONT)
        let lines = try observer.waitForOutputLines(3, timeout: .patience)
        #expect(lines.sorted() == ["com.example.stop.1", "com.example.stop.2", owned.string])
    }

    @Test(arguments: busKinds)
    func `a stopped observer hears owned names of more senders than the bus is asked about`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let names = try (0..<70).map { try NotifyName("user.uid.\(getuid()).n\($0)") }
        let observer = try startObserver(agent, of: names.map(\.string))
        // They are all in its socket when the agent parks it.
        kill(agent.agentProcess, SIGSTOP)
        #expect(waitUntil { processState(agent.agentProcess) == "T" })
        observer.send(signal: SIGSTOP)
        #expect(waitUntil { processState(observer.pid) == "T" })
        let posters = names.map { _ in agent.makeCenter() }
        for (name, poster) in zip(names, posters) {
            try poster.postOnceConnected(name)
            try poster.synchronize(timeout: .patience)
        }
        kill(agent.agentProcess, SIGCONT)
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        observer.send(signal: SIGCONT)
        let lines = try observer.waitForOutputLines(names.count, timeout: .patience)
        #expect(Set(lines) == Set(names.map(\.string)))
        withExtendedLifetime(posters) {}
    }

    /// A program that observes nothing else would then have no connection any more, and no agent would know it.
    @Test(arguments: busKinds)
    func `a name that a program was adding when it was stopped is observed when it continues`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let witness = try start(
            productPath("chaos-witness"),
            ["/dev/stdout", agent.bus.socketPath],
            environment: ["DBUS_SESSION_BUS_ADDRESS": agent.bus.address]
        )
        try witness.writeInput("add com.example.first\nsync begun\n")
        try witness.waitForOutput(containing: "begun")
        let name = try #require(try agent.list().first { $0["pid"]?.uint32 == UInt32(witness.pid) }?["name"]?.string)
        // Nothing is answered before it is stopped.
        agent.bus.stop()
        try witness.writeInput("cancel com.example.first\nadd com.example.next\n")
        try witness.waitForOutput(containing: "\nC ")
        witness.send(signal: SIGSTOP)
        try #require(waitUntil { processState(witness.pid) == "T" })
        agent.bus.resume()
        // The bus has something for it in any case.
        let client = try RawBusClient(address: agent.bus.address)
        var ping = RawMessage(.call)
        (ping.destination, ping.path, ping.interface, ping.member) = (name, "/", "org.freedesktop.DBus.Peer", "Ping")
        try client.send(ping)
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(witness.pid)) == true })
        witness.send(signal: SIGCONT)
        try witness.writeInput("sync added\n")
        let said = try witness.waitForOutput(containing: "added")
        let lines = said.split(separator: "\n")
        try #require(lines.contains { $0.hasPrefix("R ") && $0.hasSuffix(" 0 com.example.next") }, "\(said)")
        try agent.makeCenter().postOnceConnected("com.example.next")
        try witness.waitForOutput(containing: "H ")
    }

    @Test(arguments: busKinds)
    func `a parked process whose agent was killed misses no name`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent)
        let poster = agent.makeCenter()
        observer.send(signal: SIGSTOP)
        // It could still hear a post until then.
        #expect(waitUntil { processState(observer.pid) == "T" })
        try poster.postOnceConnected("com.example.stop.0")
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        try poster.synchronize(timeout: .patience)
        try agent.killAgent()
        try agent.restartAgent()
        try poster.postOnceConnected("com.example.stop.1")
        try poster.synchronize(timeout: .patience)
        observer.send(signal: SIGCONT)
        // All ten, each once, because it is no longer known which were posted.
        let lines = try observer.waitForOutputLines(10, timeout: .patience)
        #expect(Set(lines).count == 10)
    }

    @Test(arguments: busKinds)
    func `on shutdown an agent thaws what it froze`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent)
        try agent.set("pid:\(observer.pid)", .suspended, freeze: true)
        #expect(waitUntil { processState(observer.pid) == "T" })
        try agent.endAgent()
        #expect(waitUntil { processState(observer.pid) != "T" })
    }

    @Test(arguments: busKinds)
    func `an observer that is killed, parked or not, leaves nothing behind in the agent`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        for signal in [0, SIGSTOP] {
            let observer = try startObserver(agent)
            if signal != 0 {
                observer.send(signal: signal)
                // The agent notices it when the bus has something for the process.
                try agent.makeCenter().postOnceConnected("com.example.stop.0")
                try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
            } else {
                try agent.set("pid:\(observer.pid)", .suspended)
            }
            observer.send(signal: SIGKILL)
            _ = try observer.wait(timeout: .patience)
            #expect(waitUntil { (try? agent.list().contains { $0["pid"]?.uint32 == UInt32(observer.pid) }) == false })
        }
    }

    @Test(arguments: busKinds)
    func `a process suspended with a freeze is stopped, and resumed with what it missed`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent)
        let names = try (0..<10).map { try NotifyName("com.example.stop.\($0)") }
        let poster = agent.makeCenter()
        try agent.set("pid:\(observer.pid)", .suspended, freeze: true)
        #expect(waitUntil { processState(observer.pid) == "T" })
        for number in 0..<10_000 { try poster.postOnceConnected(names[number % 3]) }
        try poster.synchronize(timeout: .patience)
        try agent.set("pid:\(observer.pid)", .foreground)
        #expect(processState(observer.pid) != "T")
        let lines = try observer.waitForOutputLines(3, timeout: .patience)
        #expect(lines.sorted() == names[0..<3].map(\.string))
    }

    @Test(arguments: busKinds)
    func `a process that is frozen already can be frozen once more, and then resumed`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try startObserver(agent)
        for _ in 0..<2 {
            try agent.set("pid:\(observer.pid)", .suspended, freeze: true)
            #expect(waitUntil { processState(observer.pid) == "T" })
        }
        try agent.set("pid:\(observer.pid)", .foreground)
        #expect(processState(observer.pid) != "T")
        try agent.makeCenter().postOnceConnected("com.example.stop.0")
        #expect(try observer.waitForOutputLines(1, timeout: .patience) == ["com.example.stop.0"])
    }
}

/// A cgroup for the tests.
final class Cgroup: Sendable {
    private static let root: String? = {
        guard let mounts = try? readFile("/proc/self/mountinfo") else { return nil }
        for line in mounts.split(separator: "\n") where line.contains(" - cgroup2 ") {
            let fields = line.split(separator: " ")
            if fields.count > 4 { return String(fields[4]) }
        }
        return nil
    }()

    static var isUsable: Bool { root.map { access($0 + "/cgroup.procs", W_OK) == 0 } ?? false }

    let path: String

    init() throws {
        path = (Cgroup.root ?? "") + "/notifybus-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        try #require(mkdir(path, 0o755) == 0)
    }

    deinit {
        write("0", to: "cgroup.freeze")
        write("1", to: "cgroup.kill")
        _ = waitUntil { rmdir(path) == 0 }
    }

    func freeze() { write("1", to: "cgroup.freeze") }
    func thaw() { write("0", to: "cgroup.freeze") }

    private func write(_ text: String, to file: String) {
        let descriptor = open(path + "/" + file, O_WRONLY)
        guard descriptor >= 0 else { return }
        _ = Glibc.write(descriptor, text, text.utf8.count)
        close(descriptor)
    }
}
