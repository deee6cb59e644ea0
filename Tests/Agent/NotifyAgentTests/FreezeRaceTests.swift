// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct FreezeRaceTests {
    @Test(arguments: busKinds)
    func `a resume right after a suspension that freezes leaves nothing stopped`(kind: BusKind) throws {
        let rounds = isLongRun ? 1_000 : 50
        let agent = try AgentBus(kind)
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-v", "-f", "com.example.race"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "live")
        let client = try RawBusClient(address: agent.bus.address)
        var random = SeededGenerator(seed: 17)
        var (round, stops, delays) = (0, 0, 0)
        while round < rounds {
            // The agent finds both requests at once.
            let atOnce = round % 4 == 0
            if atOnce { try agent.halt() }
            var open: Set<UInt32> = [try client.begin("pid:\(observer.pid)", "suspended", freeze: true)]
            switch round % 4 {
            case 0: break
            case 1: _ = waitUntil(timeout: .seconds(30)) { processState(observer.pid) == "T" }
            default:
                // The resume arrives at some point during the suspension.
                let moment = ContinuousClock.now + .microseconds(Int.random(in: 0..<2_000, using: &random))
                while ContinuousClock.now < moment {
                    if processState(observer.pid) == "T" { break }
                }
            }
            open.insert(try client.begin("pid:\(observer.pid)", "foreground"))
            if atOnce {
                // The bus has passed both on.
                try client.callBus("GetId")
                agent.agent.send(signal: SIGCONT)
            }
            var isLate = false
            while !open.isEmpty {
                let message = try client.readMessage()
                guard let serial = message.replySerial, open.remove(serial) != nil else { continue }
                // On a busy machine the agent does not wait long enough.
                guard message.errorName != "org.notifybus.Error.TimedOut" else {
                    isLate = true
                    continue
                }
                #expect(message.kind == .reply, "round \(round): \(message.string ?? "")")
            }
            guard !isLate else {
                delays += 1
                try #require(delays < 20)
                try #require(client.keepSettingState("pid:\(observer.pid)", "foreground").kind == .reply)
                _ = hasContinued(observer.pid)
                continue
            }
            #expect(processState(observer.pid) != "T", "round \(round)")
            switch (round % 4, hasContinued(observer.pid)) {
            case (1, let wasStopped): #expect(wasStopped, "round \(round): it was not stopped")
            case (_, let wasStopped): if wasStopped { stops += 1 }
            }
            round += 1
        }
        print("\(kind): \(stops) of \(rounds * 3 / 4) times it stood still")
    }

    @Test(arguments: busKinds)
    func `an agent that ends leaves nothing stopped, whatever it has yet to do`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-v", "-f", "com.example.race"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "live")
        let client = try RawBusClient(address: agent.bus.address)
        try #require(client.keepSettingState("pid:\(observer.pid)", "suspended").kind == .reply)
        try agent.halt()
        // More than it takes before it finds that it is to end.
        for _ in 0..<400 { _ = try client.begin("pid:\(observer.pid)", "suspended", freeze: true) }
        try client.callBus("GetId")
        agent.agent.send(signal: SIGTERM)
        agent.agent.send(signal: SIGCONT)
        _ = try agent.agent.wait(timeout: .patience)
        #expect(processState(observer.pid) != "T")
    }

    /// Whether a child was stopped and has continued since the last call.
    private func hasContinued(_ process: pid_t) -> Bool {
        var information = siginfo_t()
        guard waitid(P_PID, id_t(process), &information, WCONTINUED | WNOHANG) == 0 else { return false }
        return information.si_signo == SIGCHLD
    }
}
