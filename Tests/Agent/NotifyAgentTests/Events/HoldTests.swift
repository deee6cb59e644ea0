// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// `notify-wait --hold`: sleep waits for the command. The bus daemons and the agent are real; logind is python3-dbusmock's.
@Suite(.enabled(if: MockLogind.isInstalled, "python3-dbusmock is not installed"))
struct HoldTests {
    /// A machine that is going to sleep, an agent, and a command that runs until it is told to end.
    private final class Night {
        static let name = "org.notifybus.system.willsleep"

        let logind: MockLogind
        let scene: Scene
        let folder: TemporaryFolder
        private(set) var waiting: RunningCommand

        init(_ kind: BusKind, limit: UInt64) throws {
            logind = try MockLogind()
            try logind.addSession("2", user: geteuid())
            try logind.setLongestDelay(microseconds: limit * 1_000_000)
            scene = try Scene(kind, environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.bus.address])
            folder = try TemporaryFolder()
            let script = """
                cd \(shellWord(folder.path)); echo begin
                until rm finish 2>/dev/null || ! [ -e "$PWD" ]; do sleep 0.02; done; echo end
                """
            // The agent takes the lock for an observer that is not live yet, too.
            waiting = try scene.bus.startWaiting(["-q", "-f", "--hold", Night.name, "--", "sh", "-c", script])
            #expect(try waitUntil { try self.logind.delays() == ["sleep"] })
        }

        func finish() throws { #expect(try run("touch", ["\(folder.path)/finish"]).status == 0) }

        /// How long it took until the lock was gone. Patience ends before a limit of 300 s.
        func timeUntilGone(since start: ContinuousClock.Instant) throws -> Duration {
            #expect(try waitUntil { try self.logind.delays().isEmpty })
            return ContinuousClock.now - start
        }

        func wake() throws {
            try logind.prepareForSleep(false)
            #expect(try waitUntil { try self.logind.delays() == ["sleep"] })
        }
    }

    @Test(arguments: busKinds)
    func `sleep waits until the command has ended, and no longer than logind allows`(kind: BusKind) throws {
        let night = try Night(kind, limit: 300)
        for round in 1...3 {
            try night.logind.prepareForSleep(true)
            try night.waiting.waitForOutputLines(2 * round - 1)
            // Observers have a second; this takes longer.
            try passTime("1.5s")
            #expect(try night.logind.delays() == ["sleep"])
            try night.finish()
            try night.waiting.waitForOutputLines(2 * round)
            _ = try night.timeUntilGone(since: .now)
            try night.wake()
        }
    }

    @Test(arguments: anyBusKind())
    func `a command that takes too long is cut off half a second before logind's limit`(kind: BusKind) throws {
        let night = try Night(kind, limit: 3)
        let start = ContinuousClock.now
        try night.logind.prepareForSleep(true)
        try night.waiting.waitForOutput(containing: "begin\n")
        #expect(try night.timeUntilGone(since: start) >= .milliseconds(2_450))
        // It goes on, and is done with a sleep that is over: the next one waits for its own run.
        try night.wake()
        try night.logind.prepareForSleep(true)
        try night.finish()
        try night.waiting.waitForOutput(containing: "begin\nend\nbegin\n")
        try passTime("1.5s")
        #expect(try night.logind.delays() == ["sleep"])
        try night.finish()
        _ = try night.timeUntilGone(since: .now)
    }

    @Test(arguments: busKinds, ["command", "agent"])
    func `if it or the agent is killed in the middle, nothing waits any more`(kind: BusKind, victim: String) throws {
        let night = try Night(kind, limit: 300)
        try night.logind.prepareForSleep(true)
        try night.waiting.waitForOutput(containing: "begin\n")
        try passTime("1.5s")
        #expect(try night.logind.delays() == ["sleep"])
        if victim == "command" { night.waiting.send(signal: SIGKILL) } else { kill(night.scene.agentProcess, SIGKILL) }
        let time = try night.timeUntilGone(since: .now)
        if isLongRun { #expect(time < .seconds(1)) }
        try night.finish()
    }

    /// With logind's default, and a longer limit.
    @Test(arguments: [5, 30] as [UInt64])
    func `the command has always ended before the lock is gone, or was cut off`(limit: UInt64) throws {
        var random = SeededGenerator(seed: limit)
        let night = try Night(busKinds[Int(limit) % busKinds.count], limit: limit)
        for round in 1...(isLongRun ? 100 : 3) {
            let start = ContinuousClock.now
            try night.logind.prepareForSleep(true)
            try night.waiting.waitForOutputLines(2 * round - 1)
            // Now and then too long.
            let isLate = limit == 5 && round.isMultiple(of: 10)
            try passTime("\(isLate ? 5_000 : Int.random(in: 0...2_500, using: &random))ms")
            if isLate {
                #expect(try night.timeUntilGone(since: start) >= .milliseconds(4_450))
                try night.finish()
                try night.waiting.waitForOutputLines(2 * round)
            } else {
                let isHeld = try night.logind.delays() == ["sleep"]
                #expect(isHeld || ContinuousClock.now - start >= .seconds(limit) - .milliseconds(550))
                try night.finish()
                _ = try night.timeUntilGone(since: start)
                #expect(try night.waiting.waitForOutputLines(2 * round).last == "end")
            }
            try night.wake()
        }
    }

    @Test(arguments: [["com.x", "--", "true"], ["org.notifybus.system.willsleep"]])
    func `it takes a command, and a name that can wait`(arguments: [String]) throws {
        let result = try run(productPath("notify-wait"), ["--address", "unix:path=/nonexistent", "--hold"] + arguments)
        #expect(result.status == 64 && result.errorOutput.hasPrefix("notify-wait: --hold "))
    }

    @Test(arguments: anyBusKind())
    func `nobody can hold anything else`(kind: BusKind) throws {
        let scene = try Scene(kind)
        for (member, signature) in [("Hold", "s"), ("LetGo", "st")] {
            for name in ["com.example.a", "org.notifybus.system.didwake", ""] {
                let arguments = [
                    "--address=\(scene.bus.address)", "call", "org.notifybus.Agent1", "/org/notifybus/Agent1",
                    "org.notifybus.Agent1", member, signature, name,
                ]
                let result = try run("busctl", arguments + (member == "LetGo" ? ["1"] : []))
                #expect(result.status != 0)
            }
        }
        let stranger = try run(
            "busctl",
            [
                "--address=\(scene.bus.address)", "call", "org.notifybus.Agent1", "/org/notifybus/Agent1",
                "org.notifybus.Agent1", "Hold", "s", "org.notifybus.system.willsleep",
            ]
        )
        #expect(stranger.errorOutput.contains("has not registered"))
    }
}
