// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// On a bus that several users share, any of them may own the agent's name. The commands believe only an agent of root or of
/// their own user.
@Suite(.enabled(if: Stranger.unavailable == nil, "Only root can connect as another user."))
struct ForeignAgentTests {
    private static let words =
        "the lifecycle agent on this bus is not used: it belongs to user \(Stranger.nobody), neither to root nor to this user"

    /// A bus on which another user owns the agent's name, and answers every call with a list of one observer.
    private func makeBus(_ kind: BusKind) throws -> (bus: PrivateBus, agent: FakeAgent, stranger: Stranger) {
        let bus = try PrivateBus(kind)
        let stranger = try Stranger(address: bus.address, .stays)
        let agent = try FakeAgent(on: bus, as: stranger.client) { _ in .reply(FakeObserver.list([FakeObserver()])) }
        return (bus, agent, stranger)
    }

    @Test(arguments: busKinds)
    func `notify-lifecycle neither asks nor believes another user's agent`(kind: BusKind) throws {
        let (bus, agent, _) = try makeBus(kind)
        let requests = [
            ["list"], ["list", "--json"], ["status"], ["launches"], ["focus"], ["watch"], ["nap", "off"], ["release"],
            ["background", "pid:\(getpid())"],
        ]
        for request in requests {
            let result = try run(productPath("notify-lifecycle"), ["--address", bus.address] + request)
            #expect(result.status == 69, "\(request): \(result)")
            #expect(result.errorOutput == "notify-lifecycle: \(ForeignAgentTests.words)\n", "\(request)")
            #expect(result.output == "", "\(request)")
        }
        #expect(agent.calls.count == 0)
    }

    @Test(arguments: busKinds)
    func `watch takes another user's agent for none, and goes on with the next one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, isReplaceable: true)
        let watching = try bus.startWatching()
        let stranger = try Stranger(address: bus.address, .stays)
        func call(_ member: String, _ values: [Wire]) throws {
            let signature = values.map(\.signature).joined()
            let answer = try stranger.client.callBus(member, signature: signature, body: Wire.body(values))
            try #require(answer.uint32 == 1, "\(answer)")
        }
        // ALLOW_REPLACEMENT, REPLACE_EXISTING
        try call("RequestName", [.string(FakeAgent.name), .uint32(3)])
        let away = "notify-lifecycle: the agent went away; waiting for it to come back\n"
        try watching.waitForErrorOutput(containing: away)
        try FakeAgent.emit(stateChange(":1.5", 666, "app", "foreground", "background"), by: stranger.client)
        // The bus gives it back.
        try call("ReleaseName", [.string(FakeAgent.name)])
        try watching.waitForErrorOutput(containing: away + "notify-lifecycle: the agent is back\n")
        try agent.emit(stateChange(":1.5", 42, "app", "foreground", "background"))
        let lines = try watching.waitForOutputLines(1)
        #expect(lines.count == 1 && lines[0].contains(" 42 "), "\(lines)")
        try stranger.client.callBus("GetId")
        while let message = try? stranger.client.readMessage(timeout: .zero) { #expect(message.kind != .call) }
    }

    @Test(arguments: busKinds)
    func `watch misses nothing that an agent says as soon as it has replaced another`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        func makeAgent() throws -> FakeAgent {
            try FakeAgent(on: bus, isReplaceable: true) { _ in .reply(FakeObserver.list([])) }
        }
        var agents = [try makeAgent()]
        let watching = try bus.startWatching()
        for process in 1...(isLongRun ? 200 : 20) {
            agents.append(try makeAgent())
            try agents.last?.emit(stateChange(":1.5", UInt32(process), "app", "foreground", "background"))
            let lines = try watching.waitForOutputLines(process)
            #expect(lines.last?.contains(" \(process) ") == true, "\(lines)")
        }
    }

    @Test(arguments: busKinds)
    func `notify-top shows no observers that another user's agent names`(kind: BusKind) throws {
        let (bus, agent, _) = try makeBus(kind)
        let text = try run(productPath("notify-top"), ["--address", bus.address, "--once"])
        #expect(text.status == 0)
        #expect(
            text.output.contains("Observers unknown: the lifecycle agent on this bus belongs to another user."),
            "\(text.output)"
        )
        let json = try run(productPath("notify-top"), ["--address", bus.address, "--once", "--json"])
        #expect(json.status == 0 && json.output == "", "\(json)")
        #expect(agent.calls.count == 0)
    }

    @Test(arguments: busKinds)
    func `another user's agent is not asked to open the relay`(kind: BusKind) throws {
        let (bus, agent, _) = try makeBus(kind)
        let result = try run(productPath("notify-agent"), ["--address", bus.address, "--relay"])
        #expect(result.status == 69, "\(result)")
        #expect(result.errorOutput.contains(ForeignAgentTests.words), "\(result)")
        #expect(agent.calls.count == 0)
    }

    @Test(arguments: busKinds)
    func `an agent of the command's own user is used, and so is root's`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let stranger = try Stranger(address: bus.address, .stays)
        let theirs = try FakeAgent(on: bus, as: stranger.client, isReplaceable: true) { _ in
            .reply(FakeObserver.list([FakeObserver(program: "theirs")]))
        }
        func list() throws -> CommandResult {
            let ids = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
            return try run(
                "setpriv",
                ids + [productPath("notify-lifecycle"), "--address", bus.address, "list"]
            )
        }
        #expect(try list().output.contains("theirs"))
        let roots = try FakeAgent(on: bus, isReplaceable: true) { _ in
            .reply(FakeObserver.list([FakeObserver(program: "roots")]))
        }
        #expect(try list().output.contains("roots"))
        #expect(theirs.calls.count == 1 && roots.calls.count == 1)
    }
}
