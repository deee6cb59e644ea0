// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyEvents
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

@Suite struct GnomeIdentityTests {
    @Test func `a process is not forgotten along with an ended one that had its number`() throws {
        let folder = try TemporaryFolder()
        let mark = try run(
            "python3",
            ["-c", "import os; os.setxattr('\(folder.path)', 'user.xdg.inactive-since', b'-1')"]
        )
        try #require(mark.status == 0, "\(mark.errorOutput)")
        let (path, found) = (folder.path, Recorder<Fact?>())
        let thread = try EventThread(name: "gnome")
        let processes = [1, 2].map { ProcessID(pid: 4_711, startTime: $0, user: 1_000) }
        thread.perform { loop in
            let board = FactBoard { _ in }
            let source = GnomeSource(FactReporter("gnome", board), on: loop) { _ in path }
            source.start()
            for process in processes { source.observerHasCome(ObservedProcess(id: process, application: "")) }
            source.observerHasGone(processes[0])
            found.append(board.take()["gnome"]?.fact)
            source.stop()
        }
        try #require(found.wait(forCount: 1))
        let focus = FocusedProcess(pid: 4_711, application: "", user: 1_000)
        #expect(found.elements == [.focus([focus], among: [4_711])])
        thread.stop(waits: true)
    }
}
