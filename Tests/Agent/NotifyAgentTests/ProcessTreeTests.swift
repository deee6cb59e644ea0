// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import NotifyAgent

/// The agent finds the processes that a program has started, and however many these are, it reads only so much of them.
@Suite struct ProcessTreeTests {
    @Test func `a program has what it has started, as far as that is looked at`() throws {
        let shell = try start(
            "/bin/sh",
            ["-c", "for child in 1 2 3 4 5; do sh -c 'echo here; exec sleep infinity' & done; wait"]
        )
        _ = try shell.waitForOutputLines(5)
        let members = ProcessTree.members(of: shell.pid)
        defer { for process in members.dropFirst() { kill(process, SIGKILL) } }
        #expect(members.count == 6 && members.first == shell.pid)
        // The first look is at the shell's thread.
        for looks in 0...10 {
            #expect(ProcessTree.members(of: shell.pid, looks: looks).count == 1 + min(5, max(0, looks - 1)))
        }
    }

    @Test func `whose member a process is, is found without its session`() throws {
        let shell = try start("/bin/sh", ["-c", "setsid -w sh -c 'sleep infinity & echo $$ $!; wait'"])
        let numbers = try shell.waitForOutputLines(1)[0].split(separator: " ").compactMap { pid_t($0) }
        defer { for process in numbers { kill(process, SIGKILL) } }
        let start = try #require(ProcessTree.Status(of: numbers[0])?.startTime)
        #expect(ProcessTree.ancestors(of: numbers[1]) == [numbers[0]: start])
        #expect(ProcessTree.ancestors(of: numbers[0]).isEmpty)
        #expect(ProcessTree.ancestors(of: shell.pid)[getpid()] == ProcessTree.Status(of: getpid())?.startTime)
    }

    @Test func `of a program with many threads only some are looked at`() throws {
        let program = """
            import subprocess, threading, time
            for _ in range(300):
                threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
            def last():
                child = subprocess.Popen(["sleep", "infinity"])
                print(child.pid, flush=True)
                child.wait()
            threading.Thread(target=last).start()
            """
        let parent = try start(python, ["-c", program])
        let child = try #require(pid_t(parent.waitForOutputLines(1)[0]))
        defer { kill(child, SIGKILL) }
        #expect(ProcessTree.members(of: parent.pid) == [parent.pid, child])
        #expect(ProcessTree.members(of: parent.pid, looks: 200) == [parent.pid])
    }

    @Test(.enabled(if: Bubblewrap.obstacle == nil, "\(Bubblewrap.obstacle ?? "")"))
    func `a process in a namespace is found by its number there, as far as processes are looked at`() throws {
        let sandbox = ["--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "sh", "-c"]
        let shell = try start("bwrap", sandbox + ["echo $$; read line"])
        let number = try #require(Int32(shell.waitForOutputLines(1)[0]))
        let found = ProcessTree.namesakes(of: [number], user: geteuid())
        #expect(found.contains { SystemFile.text(of: "/proc/\($0)/comm") == "sh\n" })
        #expect(found.allSatisfy { ProcessFolder(of: $0)?.innerNumber == number })
        #expect(ProcessTree.namesakes(of: [number], user: geteuid() + 1).isEmpty)
        #expect(ProcessTree.namesakes(of: [number], user: geteuid(), looks: 0).isEmpty)
        shell.closeInput()
        _ = try shell.wait()
    }
}
