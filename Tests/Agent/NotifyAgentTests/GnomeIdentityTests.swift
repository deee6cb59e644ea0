// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

@Suite struct GnomeIdentityTests {
    @Test func `a process is not forgotten along with an ended one that had its number`() throws {
        let folder = try TemporaryFolder()
        let mark = try run(
            python,
            ["-c", "import os; os.setxattr('\(folder.path)', 'user.xdg.inactive-since', b'-1')"]
        )
        try #require(mark.status == 0, "\(mark.errorOutput)")
        let (path, found) = (folder.path, Recorder<Fact?>())
        let thread = try EventThread(name: "gnome")
        let processes = [1, 2].map { ProcessID(pid: 4_711, startTime: $0, user: 1_000) }
        thread.perform { loop in
            let board = FactBoard { _ in }
            let driver = SourceDriver(GnomeSource { _ in path }, on: loop) { board.post("gnome", $0) }
            driver.begin()
            for process in processes {
                let facts = Newcomer.ProcessFacts(id: process, application: "", session: nil, isWatched: true)
                driver.source.observerHasCome(facts)
            }
            driver.source.observerHasGone(processes[0])
            found.append(board.take()["gnome"]?.fact)
            driver.end()
        }
        try #require(found.wait(forCount: 1))
        let focus = FocusedProcess(pid: 4_711, startTime: 2, application: "", user: 1_000)
        #expect(found.elements == [.focus([focus], among: [4_711])])
        thread.stop(waits: true)
    }
}
