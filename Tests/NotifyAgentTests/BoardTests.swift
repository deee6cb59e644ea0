// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyAgent
import NotifyCoordinator
import TestSupport
import Testing

/// How facts reach the agent from the sources, without a bus.
@Suite struct BoardTests {
    @Test func `in a flood the agent sees the first fact at once and eventually the last, and counts all`() {
        let calls = Recorder<Int64?>()
        let board = FactBoard { calls.append($0) }
        board.post("x11", .live)
        #expect(calls.elements == [nil])
        _ = board.take()
        func focus(_ pid: Int32) -> SourceReport {
            .fact(.focus([FocusedProcess(pid: pid, application: "", user: 0)]))
        }
        for pid in 1...10_000 { board.post("x11", focus(Int32(pid))) }
        // One call for all of them, for a later moment; the next one only after the agent has looked.
        #expect(calls.count == 2)
        #expect(calls.elements.last.flatMap { $0 } != nil)
        let news = board.take()
        #expect(news["x11"]?.fact == .focus([FocusedProcess(pid: 10_000, application: "", user: 0)]))
        #expect(news["x11"]?.count == 10_000)
        #expect(board.take().isEmpty)
    }

    @Test func `a source that turns off takes back its last fact`() {
        let board = FactBoard { _ in }
        var table = SourceTable(["x11"])
        board.post("x11", .live)
        board.post("x11", .fact(.focus([])))
        #expect(table.note(board.take()).count == 1)
        #expect(table.isSettled("x11"))
        board.post("x11", .off("gone"))
        _ = table.note(board.take())
        #expect(table.focus(pid: 1, application: "", user: 0) == nil)
        board.post("x11", .live)
        _ = table.note(board.take())
        // What it last reported may no longer be true.
        #expect(table.focus(pid: 1, application: "", user: 0) == nil)
        #expect(!table.isSettled("x11"))
    }
}
