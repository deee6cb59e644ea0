// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

/// Processes that continue after they were stopped.
struct ContinuingTests {
    /// What is passed on from one connection to the next is passed on in parts of 256: three names are one part. With
    /// `NOTIFYBUS_LONG=1`, as often and with as many names as a release is judged by.
    @Test(arguments: busKinds, isLongRun ? [3, 400, 2_000, 10_000] : [3 * 256 + 1, 2_000])
    func `a post after a program continues is heard, however many names it observes`(kind: BusKind, count: Int) throws {
        let agent = try AgentBus(kind)
        let names = (0..<count).map { "com.example.continuing.\($0)" }
        let posted = try names.map { try NotifyName($0) }
        let noticed = "com.example.continuing.noticed"
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-f", "-v", noticed] + names,
            environment: ["NOTIFY_SOCKET": nil]
        )
        _ = try observer.waitForErrorOutput(containing: "live", timeout: .patience)
        let poster = agent.makeCenter()
        for round in 1...(isLongRun ? 100 : 3) {
            observer.send(signal: SIGSTOP)
            try #require(waitUntil { processState(observer.pid) == "T" })
            // The agent checks only those that are posted to.
            try poster.post(NotifyName(noticed))
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
            let before = try observer.waitForOutputLines(0).count
            observer.send(signal: SIGCONT)
            // Spread over the time in which it comes back, so that some meet each part of it.
            for part in 0..<50 {
                for index in stride(from: part, to: count, by: 50) { try poster.post(posted[index]) }
                usleep(5_000)
            }
            try poster.synchronize(timeout: .patience)
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == false })
            var unheard = Set(names)
            _ = waitUntil(timeout: .seconds(20)) {
                unheard.subtract((try? observer.waitForOutputLines(0))?.dropFirst(before) ?? [])
                return unheard.isEmpty
            }
            try #require(unheard.isEmpty, "\(unheard.count) posts of round \(round) are lost")
        }
    }

    /// dbus-broker counts the rules of all connections of a user together, dbus-daemon those of each connection.
    @Test func `a program that was stopped hears names that the bus allowed the agent no rules for`() throws {
        let agent = try AgentBus(
            .broker,
            limits: ["max_match_rules_per_connection": 16, "max_connections_per_user": 16]
        )
        let names = (0..<3 * 256 / 16).map { "com.example.unruled.\($0)" }
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-f", "-v"] + names,
            environment: ["NOTIFY_SOCKET": nil]
        )
        _ = try observer.waitForErrorOutput(containing: "live", timeout: .patience)
        let poster = agent.makeCenter()
        try poster.post("com.example.ready")
        // Nothing is left for the agent, not even a rule for all names.
        var hog: RawBusClient? = try RawBusClient(address: agent.bus.address)
        var count = 0
        while count <= 256, (try? hog?.addMatch("type='signal',interface='a.b\(count)'")) != nil { count += 1 }
        try #require((1...256).contains(count))
        observer.send(signal: SIGSTOP)
        try #require(waitUntil { processState(observer.pid) == "T" })
        try poster.post(NotifyName(names[0]))
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        for name in names { try poster.post(NotifyName(name)) }
        try poster.synchronize(timeout: .patience)
        hog = nil
        observer.send(signal: SIGCONT)
        for name in names { try observer.waitForOutput(containing: "\(name)\n") }
    }
}
