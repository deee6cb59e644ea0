// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore
import TestSupport
import Testing

@testable import notify_post

/// A bus that accepts a connection and then says nothing.
@Suite struct SilentBusTests {
    private func failure(_ body: () throws(PostFailure) -> Void) -> PostFailure? {
        do throws(PostFailure) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: busKinds)
    func `without -t a poster gives up on it, with 69 and a sentence`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address, .fallsSilent)
        defer { relay.close() }
        var poster = Poster(
            NotifyCenter(bus: .address(relay.address)),
            until: nil,
            busLimit: .milliseconds(100)
        )
        let end = try #require(
            failure { () throws(PostFailure) in
                _ = try poster.post("com.example.a")
                try poster.finish()
            }
        )
        #expect(end.code == .unavailable)
        #expect(end.message == "the bus did not answer; it may be stopped or overloaded")
        // As for `notify-post -`, which asks before it reads.
        var other = Poster(NotifyCenter(bus: .address(relay.address)), until: nil, busLimit: .milliseconds(100))
        #expect(failure { () throws(PostFailure) in try other.confirm() }?.code == .unavailable)
    }

    @Test(arguments: busKinds)
    func `a poster waits for an agent as long as for the bus, and its silence is no failure`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try FakeAgent(on: bus, owning: AgentInterface.launcherName)
        let arguments = ["--address", bus.address, "-v", "com.example.a"]
        let patient = try start(productPath("notify-post"), arguments)
        try #require(agent.calls.wait(forCount: 1))
        // Until now it waited for half a second.
        #expect(!waitUntil(timeout: .seconds(1)) { processState(patient.pid).map { $0 == "Z" } ?? true })
        try agent.die()
        let end = try patient.wait(timeout: .patience)
        #expect(end.status == 0 && end.errorOutput == "notify-post: posted 1 name\n")

        let hanging = try FakeAgent(on: bus, owning: AgentInterface.launcherName)
        let result = try inTime {
            try run(productPath("notify-post"), ["-t", "300ms"] + arguments, timeout: .patience)
        } unless: {
            $0.status == 2
        }
        #expect(result.status == 0)
        #expect(
            result.errorOutput == """
                notify-post: the agent did not answer; it may not start programs for what was posted
                notify-post: posted 1 name

                """
        )
        withExtendedLifetime(hanging) {}
    }

    @Test(arguments: busKinds)
    func `with -t it is a timeout`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address, .fallsSilent)
        defer { relay.close() }
        for arguments in [["a"], ["-"]] {
            let result = try run(
                productPath("notify-post"),
                ["--address", relay.address, "-t", "300ms"] + arguments,
                input: "a\n",
                timeout: .patience
            )
            #expect(result.status == 2)
        }
    }
}
