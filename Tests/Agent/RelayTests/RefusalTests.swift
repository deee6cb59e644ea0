// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What a sandboxed program hears and learns if the relay refuses something.
@Suite(.enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"))
struct RefusalTests {
    private static let refusal = "Programs in a sandbox may not hear 'org.notifybus.session.focus'."

    /// Observes names, and notes the outcome, but not that there was none.
    private static func observe(
        _ names: [NotifyName],
        in center: NotifyCenter,
        _ outcomes: Recorder<String>,
        _ heard: Recorder<NotifyName> = Recorder()
    ) throws -> NotifyCenter.Observation {
        try center.startObserving(NotifySubject(names: names)) {
            heard.append($0)
        } whenLive: { outcome in
            switch outcome {
            case .success: outcomes.append("live")
            case .failure(let error): outcomes.append(error.description)
            }
        }
    }

    @Test func `a program that may not ask for a relay asks once`() throws {
        let denial =
            #"<policy context="mandatory"><deny send_interface="org.freedesktop.DBus" "#
            + #"send_member="StartServiceByName"/></policy>"#
        let bus = try PrivateBus(.daemon, policy: PrivateBus.openPolicy + denial)
        let relay = try BusRelay(to: bus.address)
        let observer = try start(
            productPath("notify-wait"),
            ["-v", "com.example.a"],
            environment: [
                "NOTIFYBUS_RELAY": "yes", "DBUS_SESSION_BUS_ADDRESS": relay.address, "NOTIFYBUS_ADDRESS": nil,
            ]
        )
        for text in ["because org.notifybus.Relay1", "the observer is live"] {
            try observer.waitForErrorOutput(containing: text)
        }
        let count = relay.bytesToClients.value
        // It would ask again after 250 ms.
        try passTime("1")
        #expect(relay.bytesToClients.value == count)
    }

    @Test(.serialized, arguments: busKinds)
    func `a name that is refused is refused alone, and says why, and the others are heard`(
        kind: BusKind
    ) async throws {
        try handOver(kind.rawValue, to: "refused-alone")
        await #expect(processExitsWith: .success) {
            setenv("NOTIFYBUS_RELAY", "yes", 1)
            let scene = try RelayScene(BusKind.handedOver(to: "refused-alone"))
            let sandbox = try scene.makeSandbox()
            for _ in 0..<10 {
                let center = NotifyCenter(bus: .address(sandbox.busAddress))
                let (bad, good, heard) = (Recorder<String>(), Recorder<String>(), Recorder<NotifyName>())
                // Both names are in one registration.
                let both = try RefusalTests.observe(
                    ["com.example.a", "org.notifybus.session.focus"],
                    in: center,
                    bad
                )
                let other = try RefusalTests.observe(["com.example.a"], in: center, good, heard)
                try #require(bad.wait(forCount: 1) && good.wait(forCount: 1))
                #expect(bad.elements == [RefusalTests.refusal])
                #expect(good.elements == ["live"])
                #expect(center.obstacleToHearing == nil)
                both.cancel()
                try scene.post(["com.example.a"])
                try center.barrier(timeout: .patience)
                #expect(heard.elements == ["com.example.a"])
                other.cancel()
                try center.close(timeout: .patience)
            }
            withExtendedLifetime(sandbox) {}
        }
    }

    @Test(.serialized, arguments: busKinds)
    func `after the agent was restarted, a name that is refused takes no other with it`(kind: BusKind) async throws {
        try handOver(kind.rawValue, to: "refused-later")
        await #expect(processExitsWith: .success) {
            setenv("NOTIFYBUS_RELAY", "yes", 1)
            let scene = try RelayScene(BusKind.handedOver(to: "refused-later"))
            let sandbox = try scene.makeSandbox()
            let center = NotifyCenter(bus: .address(sandbox.busAddress))
            let (outcomes, heard) = (Recorder<String>(), Recorder<NotifyName>())
            let other = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { heard.append($0) }
            try scene.killAgent()
            let observation = try RefusalTests.observe(["org.notifybus.session.focus"], in: center, outcomes)
            // Without a relay no name is refused, and the next registration has both.
            try #require(outcomes.wait(forCount: 1))
            #expect(outcomes.elements == ["live"])
            try scene.startAgentAgain()
            // It may have been posted while there was no relay, and then until the relay had it without the other name.
            try #require(heard.wait(forCount: 2))
            try center.barrier(timeout: .patience)
            #expect(heard.count == 2)
            try scene.post(["com.example.a"])
            try center.barrier(timeout: .patience)
            #expect(heard.count == 3)
            #expect(center.obstacleToHearing == nil)
            observation.cancel()
            other.cancel()
            withExtendedLifetime(sandbox) {}
        }
    }

    @Test(arguments: busKinds)
    func `notify-wait ends with the relay's sentence if one of its names is refused`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let names = ["com.example.a", "org.notifybus.session.focus"]
        let result = try sandbox.start(productPath("notify-wait"), ["-t", "60s"] + names).wait()
        #expect(result.status == 1, "\(result)")
        #expect(result.errorOutput == "notify-wait: \(RefusalTests.refusal)\n")
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `a registration that is too large is refused with the limit, and nothing is blamed on the settings`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let names = (0...4_096).map { "com.example.\($0)" }
        let observer = try sandbox.start(productPath("notify-wait"), names)
        let said = try observer.waitForErrorOutput(containing: "in all its connections together.\n")
        #expect(
            said.hasPrefix(
                "notify-wait: This program hears only names that begin with 'self.', because org.notifybus.Relay1 refused "
                    + "its registration: "
            ),
            "\(said)"
        )
        #expect(!said.contains("relay = none"))
        observer.send(signal: SIGTERM)
        _ = try observer.wait()
        withExtendedLifetime(sandbox) {}
    }

    @Test(.enabled(if: Stranger.unavailable == nil, "\(Stranger.unavailable ?? "")"), arguments: busKinds)
    func `a relay of another user is not used, and the program says so`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let stranger = try Stranger(address: bus.address, .stays)
        var body = RawBody()
        body.append("org.notifybus.Relay1")
        body.append(UInt32(0))
        let answer = try stranger.client.callBus("RequestName", signature: "su", body: body.bytes)
        try #require(answer.uint32 == 1, "\(answer)")
        let sandbox = try FlatpakSandbox(on: bus, talkingTo: relayPermission)
        let observer = try sandbox.start(productPath("notify-wait"), ["com.example.a"])
        let sentence =
            "because org.notifybus.Relay1 is not used: it belongs to user \(Stranger.nobody), neither to root nor to this "
            + "user.\n"
        try observer.waitForErrorOutput(containing: sentence)
        observer.send(signal: SIGTERM)
        _ = try observer.wait()
        withExtendedLifetime(sandbox) {}
    }

    /// It takes as long as a relay may.
    @Test(arguments: anyBusKind())
    func `a relay that does not answer is not said to be missing`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        kill(scene.agentProcess, SIGSTOP)
        let observer = try sandbox.start(productPath("notify-wait"), ["com.example.a"])
        try observer.waitForErrorOutput(containing: "because org.notifybus.Relay1 did not answer in time.\n")
        kill(scene.agentProcess, SIGCONT)
        observer.send(signal: SIGTERM)
        _ = try observer.wait()
        withExtendedLifetime(sandbox) {}
    }
}
