// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import NotifyAgent

/// What an agent writes down before it stops something, and whom others believe.
@Suite struct MarkTests {
    private func continues(_ process: pid_t) -> Bool {
        waitUntil(timeout: .seconds(5)) { processState(process) != "T" }
    }

    /// A folder, and a file in it of an agent that is gone, in which a process is said to be stopped.
    private func folder(
        _ lines: (pid_t, UInt64) -> String,
        mode: mode_t = 0o700
    ) throws -> (TemporaryFolder, MarkFolder, RunningCommand) {
        let folder = try TemporaryFolder()
        chmod(folder.path, mode)
        let program = try start("/bin/sleep", ["1000"])
        let time = ProcessFolder(of: program.pid)?.startTime
        let start = try #require(time)
        program.send(signal: SIGSTOP)
        try #require(waitUntil(timeout: .patience) { processState(program.pid) == "T" })
        try folder.write(lines(program.pid, start), to: "frozen.\(getpid()).1.0")
        return (folder, MarkFolder(path: folder.path), program)
    }

    @Test func `what is marked by an agent that is gone continues, and the mark goes`() throws {
        let (folder, marks, program) = try folder { "+person process \($0) \($1)\n" }
        let thawed = marks.thawAbandoned()
        #expect(thawed.count == 1 && thawed.contain(program.pid) && continues(program.pid))
        #expect(access(folder.path + "/frozen.\(getpid()).1.0", F_OK) != 0)
    }

    @Test func `a mark that was taken back, is incomplete or means another process continues nobody`() throws {
        for lines in [
            { "+nap process \($0) \($1)\n-process \($0) \($1)\n" }, { "+nap process \($0) \($1 + 1)\n" },
            { _, _ in "+nap cgroup /etc\n+nap process 1 1\n+nap proc" },
        ] as [(pid_t, UInt64) -> String] {
            let (folder, marks, program) = try folder(lines)
            defer { withExtendedLifetime(folder) {} }
            #expect(!marks.thawAbandoned().contain(program.pid) && processState(program.pid) == "T")
        }
    }

    @Test func `a folder that others may enter is not believed, nor written to`() throws {
        let (folder, marks, program) = try folder({ "+person process \($0) \($1)\n" }, mode: 0o777)
        #expect(marks.thawAbandoned().isEmpty && processState(program.pid) == "T")
        defer { withExtendedLifetime(folder) {} }
        var file = MarkFile(marks)
        let isMarked = file.add(.process(program.pid, start: 1), .nap)
        #expect(!isMarked)
    }

    @Test func `what a living agent has marked stays stopped, however much it has marked`() throws {
        let folder = try TemporaryFolder()
        chmod(folder.path, 0o700)
        let marks = MarkFolder(path: folder.path)
        var file = MarkFile(marks)
        // So long that it begins another file.
        for number in 0..<30_000 {
            let isMarked = file.add(.process(2, start: UInt64(number)), .nap)
            #expect(isMarked)
            if number > 2 { file.remove(.process(2, start: UInt64(number))) }
        }
        #expect(marks.thawAbandoned().isEmpty && marks.hasMarks(of: getpid()))
        for number in 0...2 { file.remove(.process(2, start: UInt64(number))) }
        #expect(!marks.hasMarks(of: getpid()))
    }

    private func startStopped() throws -> RunningCommand {
        let process = try start("/bin/sleep", ["1000"])
        process.send(signal: SIGSTOP)
        try #require(waitUntil(timeout: .patience) { processState(process.pid) == "T" })
        return process
    }

    private func thing(_ process: RunningCommand) throws -> StoppedThing {
        let time = ProcessFolder(of: process.pid)?.startTime
        return try .process(process.pid, start: #require(time))
    }

    /// Three parts: one is taken over, one is not, one has ended.
    @Test func `what was left to a process continues unless an agent has taken it over`() throws {
        let (folder, marks, program) = try folder { "+person process \($0) \($1)\n" }
        let other = try startStopped()
        let (adopted, left) = (try thing(program), try thing(other))
        // The agent that takes over, and the one that has left.
        let agent = try start("/bin/sleep", ["1000"])
        var (next, old) = (MarkFile(marks), MarkFile(marks))
        // It has no file yet.
        let isNothingGiven = next.give(to: agent.pid)
        #expect(!isNothingGiven)
        let isMarked = next.add(adopted, .person)
        #expect(isMarked)
        let isGiven = next.give(to: agent.pid)
        #expect(isGiven && marks.hasMarks(of: agent.pid))
        for thing in [adopted, left, .process(other.pid, start: 1)] {
            let isMarked = old.add(thing, .person)
            #expect(isMarked)
        }
        // The file of the dead agent, which says the same of the first.
        #expect(marks.thawAbandoned().isEmpty && processState(program.pid) == "T")
        marks.thawUnlessAdopted(within: 100)
        #expect(continues(other.pid) && processState(program.pid) == "T" && !marks.hasMarks(of: getpid()))
        withExtendedLifetime(folder) {}
    }

    /// The agent's child may no longer be its child before its socket ends, and that ends before the agent has.
    @Test func `the process that lets things continue waits until the agent has ended, whoever its parent is`()
        async throws
    {
        let (folder, program) = (try TemporaryFolder(), try startStopped())
        try handOver("\(program.pid) \(folder.path)", to: "guard")
        await #expect(processExitsWith: .success) {
            // The path may have spaces.
            let words = try handedOver(to: "guard").split(separator: " ", maxSplits: 1)
            let pid = try #require(pid_t(words[0]))
            var file = MarkFile(MarkFolder(path: "\(words[1])/notifybus"))
            let time = ProcessFolder(of: pid)?.startTime
            let isMarked = file.add(.process(pid, start: try #require(time)), .nap)
            try #require(isMarked)
            var ends: [Int32] = [-1, -1]
            let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
            let command = shellWord(try productPath("notify-agent"))
            let shell = try start(
                "/bin/sh",
                ["-c", "exec 3<&0; \(command) --thaw <&3 >/dev/null 2>&1 & echo $!"],
                environment: ["XDG_RUNTIME_DIR": String(words[1])],
                input: .descriptor(ends[1])
            )
            let child = try #require(pid_t(shell.wait().lines[0]))
            for end in ends { close(end) }
            // It has read its socket to the end.
            let path = "/proc/\(child)/fd/0"
            let hasRead = waitUntil { access(path, F_OK) != 0 }
            #expect(hasRead && processState(pid) == "T")
        }
        let isRunning = waitUntil { processState(program.pid) != "T" }
        #expect(isRunning)
        withExtendedLifetime(folder) {}
    }

    @Test func `what a dead agent had taken over continues, too`() throws {
        let (folder, marks, program) = try folder { "+person process \($0) \($1)\n" }
        let other = try startStopped()
        let (adopted, left) = (try thing(program), try thing(other))
        let agent = try start("/bin/sleep", ["1000"])
        var (next, old) = (MarkFile(marks), MarkFile(marks))
        let isAdopted = next.add(adopted, .person) && next.give(to: agent.pid)
        let isLeft = old.add(adopted, .person) && old.add(left, .person)
        try #require(isAdopted && isLeft)
        let finished = Counter()
        startThread {
            marks.thawUnlessAdopted(within: 2_000)
            finished.add()
        }
        // It has looked at the marks several times by then.
        usleep(300_000)
        agent.send(signal: SIGKILL)
        _ = try agent.wait(timeout: .patience)
        marks.thawAbandoned()
        #expect(finished.wait(for: 1))
        #expect(continues(program.pid) && continues(other.pid))
        withExtendedLifetime(folder) {}
    }
}
