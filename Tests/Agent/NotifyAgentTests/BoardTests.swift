// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyAgent
import NotifyCoordinator
import NotifyCore
import TestSupport
import Testing

/// How facts reach the agent from the sources, without a bus.
@Suite struct BoardTests {
    private func focus(_ pid: Int32) -> SourceReport {
        .fact(.focus([FocusedProcess(pid: pid, application: "", user: 0)]))
    }

    @Test func `in a flood the agent sees the first facts at once and eventually the last, and counts all`() {
        let calls = Recorder<Int64?>()
        let board = FactBoard { calls.append($0) }
        board.post("x11", .live)
        _ = board.take()
        for pid in 1...4 {
            board.post("x11", focus(Int32(pid)))
            #expect(board.take()["x11"]?.fact == .focus([FocusedProcess(pid: Int32(pid), application: "", user: 0)]))
        }
        #expect(calls.elements == Array(repeating: nil, count: 5))
        // So often that the next look is seconds away, even if this thread has to wait for the processor.
        for pid in 1...1_000 {
            board.post("x11", focus(Int32(pid)))
            _ = board.take()
        }
        let before = calls.count
        for pid in 1...10_000 { board.post("x11", focus(Int32(pid))) }
        // One call for all of them, for a later moment; the next one only after the agent has looked.
        #expect(calls.count == before + 1)
        #expect(calls.elements.last.flatMap { $0 } != nil)
        let news = board.take()
        #expect(news["x11"]?.fact == .focus([FocusedProcess(pid: 10_000, application: "", user: 0)]))
        #expect(news["x11"]?.count == 10_000)
        #expect(board.take().isEmpty)
    }

    @Test func `however fast the agent looks, it is called fifty times a second`() throws {
        let calls = Recorder<Int64?>()
        let board = FactBoard { calls.append($0) }
        let began = MonotonicTime.now.nanoseconds
        for pid in 1...1_000 {
            board.post("x11", focus(Int32(pid)))
            _ = board.take()
        }
        let last = try #require(calls.elements.last.flatMap { $0 })
        #expect(last - began >= 995 * 20_000_000)
    }

    @Test func `after a look the agent rests nine times as long as it has worked, not as it has waited`() {
        let calls = Recorder<Int64?>()
        let board = FactBoard { calls.append($0) }
        for _ in 0..<2 {
            board.post("x11", .live)
            board.look { _ in usleep(50_000) }
        }
        // It may have worked a little.
        board.post("x11", .live)
        #expect(calls.elements == [nil, nil, nil])
        let began = MonotonicTime.now.nanoseconds
        board.look { _ in
            var (time, end) = (timespec(), timespec())
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
            end.tv_nsec += 100_000_000
            func nanoseconds(_ time: timespec) -> Int { time.tv_sec * 1_000_000_000 + time.tv_nsec }
            repeat { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) } while nanoseconds(time) < nanoseconds(end)
        }
        board.post("x11", .live)
        // Others may have had the processor for so long that it has rested already.
        let next = (calls.elements.last ?? nil) ?? MonotonicTime.now.nanoseconds
        #expect(calls.count == 4 && next - began >= 900_000_000)
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
        // Its last report may no longer be true.
        #expect(table.focus(pid: 1, application: "", user: 0) == nil)
        #expect(!table.isSettled("x11"))
    }
}
