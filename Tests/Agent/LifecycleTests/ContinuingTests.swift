// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Processes that continue after they were stopped.
struct ContinuingTests {
    /// Names are passed on from one connection to the next in parts of 256: three names are one part. With
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
        // On a busy machine it is live before that: it waits for the agent's answer for two seconds.
        try #require(waitUntil { (try? agent.list())?.contains { $0["pid"]?.uint32 == UInt32(observer.pid) } == true })
        let poster = agent.makeCenter()
        for round in 1...(isLongRun ? 100 : 3) {
            observer.send(signal: SIGSTOP)
            try #require(waitUntil { processState(observer.pid) == "T" })
            // The agent checks only those that are posted to.
            try poster.postOnceConnected(NotifyName(noticed))
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
            let before = try observer.waitForOutputLines(0).count
            observer.send(signal: SIGCONT)
            // Spread over the time in which it comes back, so that some meet each part of it.
            for part in 0..<50 {
                for index in stride(from: part, to: count, by: 50) { try poster.postOnceConnected(posted[index]) }
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
    @Test(.enabled(if: BusKind.broker.unavailable == nil, "dbus-broker can't be started here"))
    func `a program that was stopped hears names that the bus allowed the agent no rules for`() throws {
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
        try poster.postOnceConnected("com.example.ready")
        // Nothing is left for the agent, not even a rule for all names.
        var hog: RawBusClient? = try RawBusClient(address: agent.bus.address)
        var count = 0
        while count <= 256, (try? hog?.addMatch("type='signal',interface='a.b\(count)'")) != nil { count += 1 }
        try #require((1...256).contains(count))
        observer.send(signal: SIGSTOP)
        try #require(waitUntil { processState(observer.pid) == "T" })
        try poster.postOnceConnected(NotifyName(names[0]))
        try #require(waitUntil(timeout: .patience) { (try? agent.isParked(observer.pid)) == true })
        for name in names { try poster.postOnceConnected(NotifyName(name)) }
        try poster.synchronize(timeout: .patience)
        hog = nil
        observer.send(signal: SIGCONT)
        for name in names { try observer.waitForOutput(containing: "\(name)\n") }
    }

    /// The agent ends the connection of a program that it has parked. After it continues, it may ask before it notices.
    @Test(arguments: busKinds)
    func `a program that asks the agent something just as it continues gets its answer`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let record = "/tmp/notifybus-continuing-\(getpid())-\(UInt32.random(in: 0...(.max)))"
        defer { unlink(record) }
        let program = try start(
            productPath("chaos-witness"),
            [record, "/nowhere"],
            environment: ["DBUS_SESSION_BUS_ADDRESS": agent.bus.address]
        )
        try program.writeInput("add com.example.a\nsync live\n")
        _ = try program.waitForOutputLines(1)
        let poster = agent.makeCenter()
        let rounds = isLongRun ? 200 : 20
        for round in 1...rounds {
            program.send(signal: SIGSTOP)
            try #require(waitUntil { processState(program.pid) == "T" })
            // The agent checks only those that are posted to.
            try poster.postOnceConnected("com.example.a")
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(program.pid)) == true })
            try program.writeInput("report foreground\nsync \(round)\n")
            program.send(signal: SIGCONT)
            _ = try program.waitForOutputLines(1 + round, timeout: .patience)
            try #require(waitUntil(timeout: .patience) { (try? agent.isParked(program.pid)) == false })
        }
        let reports = try readLines(record).filter { $0.hasPrefix("S ") }
        #expect(reports.count == rounds)
        // What it was, since when, until when, whether it failed, and of what.
        #expect(reports.filter { $0.split(separator: " ").dropFirst(3).first != "0" } == [])
        program.closeInput()
        try #require(try program.wait(timeout: .patience).status == 0)
    }
}
