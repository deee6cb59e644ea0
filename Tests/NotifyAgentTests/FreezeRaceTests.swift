// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct FreezeRaceTests {
    @Test(arguments: busKinds)
    func `whoever resumes right after a suspension that freezes leaves nobody stopped`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-v", "-f", "com.example.race"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "live")
        let client = try RawBusClient(address: agent.bus.address)
        var random = SeededGenerator(seed: 17)
        var stops = 0
        for round in 0..<1_000 {
            var open: Set<UInt32> = [try client.begin("pid:\(observer.pid)", "suspended", freeze: true)]
            switch round % 4 {
            case 0: break
            case 1:
                try #require(waitUntil { processState(observer.pid) == "T" })
                stops += 1
            default:
                // Falls somewhere in between.
                let moment = ContinuousClock.now + .microseconds(Int.random(in: 0..<2_000, using: &random))
                while ContinuousClock.now < moment {
                    if processState(observer.pid) == "T" {
                        stops += 1
                        break
                    }
                }
            }
            open.insert(try client.begin("pid:\(observer.pid)", "foreground"))
            while !open.isEmpty {
                let message = try client.readMessage()
                guard let serial = message.replySerial, open.remove(serial) != nil else { continue }
                #expect(message.kind == .reply, "round \(round): \(message.string ?? "")")
            }
            #expect(processState(observer.pid) != "T", "round \(round)")
        }
        print("\(kind): \(stops) of 1,000 times it stood still")
    }
}
