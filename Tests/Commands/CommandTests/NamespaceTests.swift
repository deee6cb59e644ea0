// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// A bus that offers no other mechanism than EXTERNAL, as every distribution's.
private func makeBus(_ kind: BusKind, policy: String = PrivateBus.openPolicy) throws -> PrivateBus {
    try PrivateBus(kind, policy: "<auth>EXTERNAL</auth>" + policy)
}

/// Programs in a user namespace, as in a container without root, on a bus outside.
@Suite(.enabled(if: UserNamespace.obstacle == nil, "\(UserNamespace.obstacle ?? "")"))
struct NamespaceTests {
    private func start(
        _ product: String,
        _ arguments: [String],
        on bus: PrivateBus,
        by command: [String],
        descriptors: [Int32: Int32] = [:]
    ) throws -> RunningCommand {
        try TestSupport.start(
            product: product,
            ["--address", bus.address] + arguments,
            by: command,
            input: .null,
            descriptors: descriptors
        )
    }

    private func run(
        _ product: String,
        _ arguments: [String],
        on bus: PrivateBus,
        by command: [String]
    ) throws -> CommandResult {
        try start(product, arguments, on: bus, by: command).wait(timeout: .patience)
    }

    /// Starts `notify-wait` inside, and returns when its observer is live.
    private func startWaiting(_ arguments: [String], on bus: PrivateBus, by command: [String]) throws -> RunningCommand
    {
        let ready = try Pipe()
        let waiting = try start(
            "notify-wait",
            ["--ready-fd", "3"] + arguments,
            on: bus,
            by: command,
            descriptors: [3: ready.writeEnd]
        )
        ready.closeWriteEnd()
        guard try ready.read() == "\n" else {
            throw TestSupportError("notify-wait did not come to wait, but said: \(try waiting.wait().errorOutput)")
        }
        return waiting
    }

    private func startAgent(_ bus: PrivateBus, by command: [String] = ["env"]) throws -> RunningCommand {
        let agent = try start("notify-agent", [], on: bus, by: ["env", "DISPLAY=", "WAYLAND_DISPLAY="] + command)
        try agent.waitForErrorOutput(containing: "ready")
        return agent
    }

    private func end(_ command: RunningCommand) throws {
        command.send(signal: SIGTERM)
        _ = try command.wait()
    }

    @Test(arguments: busKinds, UserNamespace.allCases)
    func `a program inside hears posts from outside and from inside, and is heard`(
        kind: BusKind,
        namespace: UserNamespace
    ) throws {
        let bus = try makeBus(kind)
        let inside = try startWaiting(["--all", "com.example.out", "com.example.in"], on: bus, by: namespace.command)
        let outside = try bus.startWaiting(["com.example.in"])
        #expect(try bus.run("notify-post", ["com.example.out"]).status == 0)
        let post = try run("notify-post", ["com.example.in"], on: bus, by: namespace.command)
        #expect(post.status == 0 && post.errorOutput == "")
        #expect(try inside.wait().output == "com.example.out\ncom.example.in\n")
        #expect(try outside.wait().output == "com.example.in\n")
    }

    @Test(arguments: busKinds, [BusRelay.Manner.dribbles, .wantsOneLineAtATime])
    func `the answers to a program inside may arrive byte by byte, and to one line at a time`(
        kind: BusKind,
        manner: BusRelay.Manner
    ) throws {
        let bus = try makeBus(kind)
        let relay = try BusRelay(to: bus.address, manner)
        defer { relay.close() }
        let outside = try bus.startWaiting(["com.example.in"])
        let command = UserNamespace.renumbers.command
        let post = try TestSupport.start(
            product: "notify-post",
            ["--address", relay.address, "com.example.in"],
            by: command
        ).wait()
        #expect(post.status == 0 && post.errorOutput == "")
        #expect(try outside.wait().status == 0)
    }

    @Test(arguments: busKinds, UserNamespace.allCases)
    func `a program inside hears again after the bus was restarted`(kind: BusKind, namespace: UserNamespace) throws {
        let bus = try makeBus(kind)
        let inside = try startWaiting(["-v", "com.example.a"], on: bus, by: namespace.command)
        try bus.restart()
        try inside.waitForErrorOutput(containing: "the bus is back")
        #expect(try bus.run("notify-post", ["com.example.a"]).status == 0)
        #expect(try inside.wait().output == "com.example.a\n")
    }

    @Test(arguments: busKinds, UserNamespace.allCases)
    func `states are set and read inside as outside`(kind: BusKind, namespace: UserNamespace) throws {
        let bus = try makeBus(kind)
        let agent = try startAgent(bus)
        let inside = try startWaiting(["-f", "com.example.a"], on: bus, by: namespace.command)
        let set = try run("notify-state", ["set", "com.example.a", "7"], on: bus, by: namespace.command)
        #expect(set.status == 0 && set.errorOutput == "")
        #expect(try run("notify-state", ["com.example.a"], on: bus, by: namespace.command).output == "7\n")
        #expect(try bus.run("notify-state", ["com.example.a"]).output == "7\n")
        try end(inside)
        try end(agent)
    }

    @Test(arguments: busKinds, UserNamespace.allCases)
    func `notify-top shows what is posted outside`(kind: BusKind, namespace: UserNamespace) throws {
        let bus = try makeBus(kind)
        let result = try inTime {
            let top = try start("notify-top", ["--once", "-v", "-t", "2s"], on: bus, by: namespace.command)
            try top.waitForErrorOutput(containing: "listening")
            #expect(try bus.run("notify-post", ["com.example.out"]).status == 0)
            return try top.wait()
        } unless: {
            !$0.output.contains("com.example.out")
        }
        #expect(result.status == 0 && result.output.contains("com.example.out"))
    }

    @Test(arguments: busKinds, UserNamespace.allCases)
    func `a Swift program inside hears, posts and confirms`(kind: BusKind, namespace: UserNamespace) throws {
        let bus = try makeBus(kind)
        let file = "\(bus.socketPath).record"
        let witness = try TestSupport.start(
            product: "chaos-witness",
            [file, bus.socketPath],
            by: namespace.command,
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address, "NOTIFYBUS_ADDRESS": nil]
        )
        let outside = try bus.startWaiting(["com.example.in"])
        try witness.writeInput("add com.example.out\nsync ready\n")
        try witness.waitForOutput(containing: "ready")
        #expect(try bus.run("notify-post", ["com.example.out"]).status == 0)
        try witness.writeInput("post com.example.in\nflush\n")
        #expect(try outside.wait().status == 0)
        #expect(try waitUntil { try readFile(file).contains("H ") })
        witness.closeInput()
        _ = try witness.wait()
        // What was done, and with which status.
        let done = try readLines(file).map { line in
            let words = line.split(separator: " ")
            return "\(words[0]) \(words[3])"
        }
        #expect(Set(done) == ["R 0", "H 0", "P 0", "Y 0"], "\(done)")
    }

    /// In a PID namespace of their own, too, as in a container.
    @Test(arguments: busKinds, UserNamespace.allCases)
    func `the agent sees a program inside as the process that it is outside`(kind: BusKind, namespace: UserNamespace)
        throws
    {
        let bus = try makeBus(kind)
        let agent = try startAgent(bus)
        let command = namespace.command.dropLast() + ["-p", "-f", "--kill-child", "--"]
        let inside = try startWaiting(["--all", "com.example.a", "com.example.b"], on: bus, by: Array(command))
        let process = try #require(children(of: inside.pid, named: "notify-wait").first)
        let list = try bus.run("notify-lifecycle", ["list", "--json"])
        #expect(list.output.contains("\"pid\":\(process),"), "\(list.output)\(list.errorOutput)")
        let target = "pid:\(process)"
        #expect(try bus.run("notify-lifecycle", ["suspend", "--freeze", target]).status == 0)
        #expect(waitUntil { processState(process).map { $0 == "T" } ?? false })
        #expect(try bus.run("notify-post", ["com.example.a"]).status == 0)
        #expect(try bus.run("notify-lifecycle", ["resume", target]).status == 0)
        #expect(try bus.run("notify-post", ["com.example.b"]).status == 0)
        #expect(try inside.wait().output == "com.example.a\ncom.example.b\n")
        try end(agent)
    }

    @Test(arguments: busKinds)
    func `an agent can't run inside, and says why`(kind: BusKind) throws {
        let bus = try makeBus(kind)
        let result = try run("notify-agent", [], on: bus, by: UserNamespace.renumbers.command)
        #expect(result.status == 69)
        #expect(
            result.errorOutput.hasSuffix(
                "The agent is in another user namespace than the bus, so it can't tell whose programs it sees.\n"
            ),
            "\(result.errorOutput)"
        )
    }
}

private let user = Stranger.nobody
/// Another user who exists on every machine.
private let other: UInt32 = 1

/// Why user `user` can't run a command in a namespace here; nil if it can.
private let obstacleToIdentity: String? = {
    if let obstacle = Stranger.unavailable ?? UserNamespace.obstacle { return obstacle }
    let command = UserNamespace.mapsRoot.command(as: user)
    guard let version = try? start(product: "notify-post", ["--version"], by: command).wait(), version.status == 0
    else {
        return "Another user can't run the commands here."
    }
    return nil
}()

/// What a program inside claims to be, and what it is: a user without rights.
@Suite(.enabled(if: obstacleToIdentity == nil, "\(obstacleToIdentity ?? "")"))
struct NamespaceIdentityTests {
    private func become(_ user: UInt32) -> [String] {
        ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--"]
    }

    private func run(_ product: String, _ arguments: [String], on bus: PrivateBus, by command: [String]) throws
        -> CommandResult
    {
        try start(product: product, ["--address", bus.address] + arguments, by: command, input: .null).wait()
    }

    @Test(arguments: busKinds)
    func `who is root inside may post no more names than outside`(kind: BusKind) throws {
        let bus = try makeBus(kind)
        let own = "user.uid.\(user).a"
        let heard = Recorder<String>()
        let observation = try bus.makeCenter().addObserver(matching: .prefix("user.uid."), timeout: .patience) {
            heard.append($0.string)
        }
        let command = UserNamespace.mapsRoot.command(as: user)
        let post = try run("notify-post", ["user.uid.0.a", "user.uid.1.a", own], on: bus, by: command)
        #expect(post.status == 0 && post.errorOutput == "")
        // The posts of one sender are judged in order.
        #expect(heard.wait(forCount: 1))
        #expect(heard.elements == [own])
        observation.cancel()
    }

    /// Whether the agent of one user knows the observer of another, or the same, who calls itself `inside`.
    private func isRegistered(_ bus: PrivateBus, agentOf agentUser: UInt32, inside: UInt32) throws -> Bool {
        let agent = try start(product: "notify-agent", ["--address", bus.address], by: become(agentUser))
        try agent.waitForErrorOutput(containing: "ready")
        let command = become(user) + ["unshare", "-U", "--map-user=\(inside)", "--"]
        let ready = try Pipe()
        let observer = try start(
            product: "notify-wait",
            ["--address", bus.address, "--ready-fd", "3", "com.example.a"],
            by: command,
            input: .null,
            descriptors: [3: ready.writeEnd]
        )
        ready.closeWriteEnd()
        // It is ready once it knows whether to obey the agent.
        #expect(try ready.read() == "\n")
        // Root would not ask another user's agent.
        let list = try run("notify-lifecycle", ["list", "--json"], on: bus, by: become(agentUser))
        #expect(list.status == 0, "\(list)")
        for command in [observer, agent] {
            command.send(signal: SIGTERM)
            _ = try command.wait()
        }
        return list.output.contains("\"pid\":\(observer.pid),")
    }

    @Test(arguments: busKinds)
    func `a program inside obeys the agent of the user that it is outside, and of nobody whom it claims to be`(
        kind: BusKind
    ) throws {
        let bus = try makeBus(kind)
        #expect(try isRegistered(bus, agentOf: user, inside: 1_000))
        #expect(try isRegistered(bus, agentOf: user, inside: 0))
        #expect(try !isRegistered(bus, agentOf: other, inside: other))
    }

    @Test(arguments: busKinds)
    func `another user's bus refuses programs inside and outside, in one sentence for every command`(kind: BusKind)
        throws
    {
        let policy = """
            <policy context="default">
              <allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
            </policy>
            """
        let bus = try makeBus(kind, policy: policy)
        let sentence =
            "The bus at '\(bus.address)' closed the connection instead of accepting it; it may belong to another user.\n"
        for command in [
            become(user), UserNamespace.mapsRoot.command(as: user), UserNamespace.renumbers.command(as: user),
        ] {
            for (name, arguments) in [
                ("notify-post", ["a"]), ("notify-wait", ["a"]), ("notify-lifecycle", ["list"]),
                ("notify-state", ["a"]),
            ] {
                let result = try run(name, arguments, on: bus, by: command)
                #expect(result.status == 69, "\(name) by \(command)")
                #expect(result.errorOutput == "\(name): \(sentence)", "by \(command)")
            }
        }
    }
}
