// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Testing

@Suite struct MonitorTests {
    private struct Count {
        var value = 0
        var isTaken = false
        var overlaps = 0
    }

    /// Runs `body` on several threads, and waits for all of them.
    private func onThreads(_ count: Int, _ body: @escaping @Sendable () -> Void) throws {
        let threads = try (0..<count).map { _ in try EngineThread(body) }
        for thread in threads { thread.finish() }
    }

    @Test("a monitor admits one thread at a time")
    func excludes() throws {
        let monitor = Monitor(Count())
        try onThreads(8) {
            for _ in 0..<20_000 {
                monitor.withLock { count in
                    if count.isTaken { count.overlaps += 1 }
                    count.isTaken = true
                    count.value += 1
                    count.isTaken = false
                }
            }
        }
        #expect(monitor.withLock { $0.value } == 160_000)
        #expect(monitor.withLock { $0.overlaps } == 0)
    }

    @Test("no thread that waits for a change misses it")
    func wakes() throws {
        let monitor = Monitor(Count())
        // Each thread waits for its turn, which the previous one signals.
        let turns = 4_000
        let numbers = Monitor(Count())
        try onThreads(4) {
            let own = numbers.withLock { count in
                defer { count.value += 1 }
                return count.value
            }
            for turn in stride(from: own, to: turns, by: 4) {
                let _: Void? = monitor.wait(until: nil) { count in
                    guard count.value == turn else { return nil }
                    count.value += 1
                    return ()
                }
                monitor.wakeAll()
            }
        }
        #expect(monitor.withLock { $0.value } == turns)
    }

    @Test("a wait with a deadline ends when it has passed")
    func endsAtDeadline() throws {
        let monitor = Monitor(Count())
        let deadline = MonotonicTime.now + 20
        let result: Int? = monitor.wait(until: deadline) { $0.value > 0 ? $0.value : nil }
        #expect(result == nil)
        #expect(MonotonicTime.now >= deadline)
    }

    @Test("waiting for a lock that another thread holds ends at the deadline, and the lock is free afterwards")
    func lockEndsAtDeadline() throws {
        let monitor = Monitor(Count())
        let holder = Monitor(Count())
        let thread = try EngineThread {
            monitor.withLock { _ in
                holder.withLock { $0.value = 1 }
                holder.wakeAll()
                let _: Void? = holder.wait(until: nil) { $0.value == 2 ? () : nil }
            }
        }
        let _: Void? = holder.wait(until: nil) { $0.value == 1 ? () : nil }
        #expect(monitor.withLock(until: .now + 20) { _ in true } == nil)
        holder.withLock { $0.value = 2 }
        holder.wakeAll()
        thread.finish()
        #expect(monitor.withLock(until: .now + 10_000) { _ in true } == true)
    }
}
