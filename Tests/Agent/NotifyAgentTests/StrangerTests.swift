// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// What the user `nobody` can't do to root.
@Suite(.enabled(if: Stranger.unavailable == nil, "Only root can connect as another user."))
struct StrangerTests {
    private static let denied = "org.freedesktop.DBus.Error.AccessDenied"

    private func isListed(_ client: RawBusClient, by witness: RawBusClient) throws -> Bool {
        try list(by: witness).contains(client.uniqueName + "\0")
    }

    /// List's answer, as text.
    private func list(by witness: RawBusClient) throws -> String {
        String(decoding: try witness.callAgent("List").body, as: UTF8.self)
    }

    // MARK: - Process IDs

    @Test(arguments: busKinds)
    func `a connection whose process has ended is not registered`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let dead = try Stranger(address: agent.bus.address, .ends)
        let answer = try dead.client.register(["com.example.a"])
        #expect(answer.errorName == StrangerTests.denied && answer.string?.contains("has ended") == true)
        let witness = try RawBusClient(address: agent.bus.address)
        #expect(try !isListed(dead.client, by: witness))
        try agent.checkAlive()
    }

    @Test(arguments: busKinds)
    func `registering with the ID of a process of root gives no power over it`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        // Several IDs are tried, because other processes may take one first.
        for _ in 0..<20 {
            let dead = try Stranger(address: agent.bus.address, .ends)
            guard let victim = try start(as: dead.pid, "sleep", "60") else { continue }
            defer { kill(dead.pid, SIGKILL) }
            let answer = try dead.client.register(["com.example.a"])
            #expect(answer.errorName == StrangerTests.denied, "\(answer)")
            // A bus that knows the process by a descriptor says that it has ended; another one knows its number only.
            let reasons = ["belongs to user 0", "has ended"]
            #expect(reasons.contains { answer.string?.contains($0) == true }, "\(answer.string ?? "")")
            let caller = try Stranger(address: agent.bus.address, .stays)
            for target in ["pid:\(dead.pid)", dead.client.uniqueName] {
                let answer = try caller.client.setState(target, "suspended", freeze: true)
                #expect(answer.errorName == "org.notifybus.Error.NoSuchTarget")
            }
            #expect(processState(dead.pid) != "T")
            withExtendedLifetime(victim) {}
            return
        }
        Issue.record("the kernel gave none of the numbers again")
    }

    @Test(arguments: busKinds, [Stranger.Fate.stays, .ends])
    func `a later process of root with the same ID begins in the foreground, and stays there`(
        kind: BusKind,
        fate: Stranger.Fate
    ) throws {
        let agent = try AgentBus(kind)
        for _ in 0..<20 {
            let stranger = try Stranger(address: agent.bus.address, fate)
            let caller = try Stranger(address: agent.bus.address, .stays)
            if try stranger.client.register(["com.example.a"]).kind == .reply {
                let serial = try caller.client.begin("pid:\(stranger.pid)", "background")
                #expect(try stranger.client.takeCall("SetState").string == "background")
                #expect(try caller.client.answer(to: serial).kind == .reply)
            }
            // Its connection stays, because this test holds it.
            try stranger.end()
            let path = try productPath("notify-wait")
            guard let later = try start(as: stranger.pid, path, "--address", agent.bus.address, "-fv", "com.example.a")
            else { continue }
            defer { kill(stranger.pid, SIGKILL) }
            try later.waitForErrorOutput(containing: "the observer is live")
            let refusal = try caller.client.setState("pid:\(stranger.pid)", "suspended", freeze: true)
            #expect(refusal.errorName == StrangerTests.denied, "\(refusal)")
            let poster = try RawBusClient(address: agent.bus.address)
            try poster.post("com.example.a")
            #expect(try later.waitForOutputLines(1) == ["com.example.a"])
            return
        }
        Issue.record("the kernel gave none of the numbers again")
    }

    @Test(arguments: busKinds)
    func `a process that executes a set-user-ID program no longer belongs to its user`(kind: BusKind) throws {
        let folder = try TemporaryFolder()
        let program = folder.path + "/stay"
        try #require(try run("cp", ["/bin/cat", program]).status == 0)
        try #require(chown(program, 0, 0) == 0 && chmod(program, 0o4755) == 0)
        let agent = try AgentBus(kind)
        let stranger = try Stranger(address: agent.bus.address, .executes(program))
        #expect(try stranger.client.register(["com.example.a"]).kind == .reply)
        try stranger.letGo()
        try #require(
            waitUntil { userIDs(of: stranger.pid) == [65_534, 0, 0] },
            "the folder forbids set-user-ID programs"
        )
        let caller = try Stranger(address: agent.bus.address, .stays)
        for target in ["pid:\(stranger.pid)", stranger.client.uniqueName] {
            let answer = try caller.client.setState(target, "suspended", freeze: true)
            #expect(answer.errorName == StrangerTests.denied, "\(answer)")
        }
        #expect(processState(stranger.pid) != "T")
        // Root is allowed to.
        let root = try RawBusClient(address: agent.bus.address)
        let serial = try root.begin(stranger.client.uniqueName, "suspended", freeze: true)
        #expect(try stranger.client.takeCall("SetState").string == "suspended")
        #expect(try root.answer(to: serial).kind == .reply)
        #expect(waitUntil { processState(stranger.pid) == "T" })
    }

    @Test(arguments: busKinds)
    func `a process that executes a set-user-ID program while it is being suspended is not stopped`(kind: BusKind)
        throws
    {
        let folder = try TemporaryFolder()
        let program = folder.path + "/stay"
        try #require(try run("cp", ["/bin/cat", program]).status == 0)
        try #require(chown(program, 0, 0) == 0 && chmod(program, 0o4755) == 0)
        let agent = try AgentBus(kind)
        let stranger = try Stranger(address: agent.bus.address, .executes(program))
        #expect(try stranger.client.register(["com.example.a"]).kind == .reply)
        let caller = try Stranger(address: agent.bus.address, .stays)
        let serial = try caller.client.begin("pid:\(stranger.pid)", "suspended", freeze: true)
        // The user had permission, and loses it before the observer answers.
        let question = try stranger.client.readCall()
        try stranger.letGo()
        try #require(
            waitUntil { userIDs(of: stranger.pid) == [65_534, 0, 0] },
            "the folder forbids set-user-ID programs"
        )
        try stranger.client.answerSetState(question)
        let answer = try caller.client.answer(to: serial)
        #expect(answer.kind == .error && answer.string?.contains("rights of another user") == true, "\(answer)")
        #expect(processState(stranger.pid) != "T")
    }

    // MARK: - Root directories

    @Test(arguments: busKinds)
    func `no file is opened through a stranger's root directory, and nothing in it is believed`(kind: BusKind) throws {
        let folder = try TemporaryFolder()
        let secret = folder.path + "/secret"
        try folder.write("[Application]\nname=org.example.Secret\n", to: "secret")
        let openings = try Openings(of: secret)
        let agent = try AgentBus(kind)
        let witness = try RawBusClient(address: agent.bus.address)
        for user in [Stranger.nobody, 0] {
            let root = try TemporaryFolder()
            try #require(symlink("../../../../../../../.." + secret, root.path + "/.flatpak-info") == 0)
            let stranger = try Stranger(address: agent.bus.address, user: user, .changesRoot(root.path))
            #expect(try stranger.client.register(["com.example.a"]).kind == .reply)
            #expect(try isListed(stranger.client, by: witness))
            #expect(try !list(by: witness).contains("org.example.Secret"))
        }
        #expect(openings.count == 0)
        // The counter works.
        #expect(try run("cat", [secret]).status == 0)
        #expect(openings.count > 0)
    }

    // MARK: - Sandboxes

    @Test(arguments: busKinds)
    func `a program in a sandbox can report its own state, and neither change nor see what is others'`(kind: BusKind)
        throws
    {
        let agent = try AgentBus(kind)
        let root = try TemporaryFolder()
        try root.write("[Application]\nname=org.example.Boxed\n", to: ".flatpak-info")
        let boxed = try Stranger(address: agent.bus.address, user: 0, .changesRoot(root.path))
        #expect(try boxed.client.register(["com.example.a"]).kind == .reply)
        let other = try RawBusClient(address: agent.bus.address)
        #expect(try other.register(["com.example.a"]).kind == .reply)
        var release = RawBody()
        release.append("")
        var focus = RawBody()
        focus.append("org.notifybus.session.focus")
        let calls: [(String, String, [UInt8])] = [
            ("SetState", "ssb", RawBusClient.setStateBody(other.uniqueName, "background")),
            ("SetState", "ssb", RawBusClient.setStateBody("pid:\(getpid())", "suspended", freeze: true)),
            ("Release", "s", release.bytes), ("SetForeground", "u", [1, 0, 0, 0]), ("SetNaps", "b", [0, 0, 0, 0]),
            ("GetNameState", "s", focus.bytes),
        ]
        for (member, signature, body) in calls {
            let answer = try boxed.client.callAgent(member, signature: signature, body: body)
            #expect(answer.errorName == StrangerTests.denied, "\(member): \(answer)")
            #expect(answer.string?.contains("in a Flatpak") == true, "\(member): \(answer.string ?? "")")
        }
        // It may report its own state.
        let serial = try boxed.client.beginReport("background")
        #expect(try boxed.client.takeCall("SetState").string == "background")
        #expect(try boxed.client.answer(to: serial).kind == .reply)
        // The other one was told nothing.
        try other.settle()
        #expect(throws: (any Error).self) { try other.readCall(timeout: .milliseconds(1)) }
    }
}
