// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import TestSupport
import Testing

@testable import notify_wait

/// What is collected for `--settle`, and what is due while the command runs.
@Suite struct BurstTests {
    private func names(_ numbers: Range<Int>) throws -> [NotifyName] {
        try numbers.map { try NotifyName("com.example.\($0)") }
    }

    @Test func `a burst with as many names as may be queued is over at once`() throws {
        var settling = Settling(.seconds(3_600))
        var bursts: [Int] = []
        for name in try names(0..<WaitingRuns.limit + 10) {
            settling.add(Notification(name: name, time: makeTime(seconds: 0, nanoseconds: 0), moment: 0))
            if let burst = settling.take(at: 0) { bursts.append(burst.entries.count) }
        }
        #expect(bursts == [WaitingRuns.limit])
    }

    @Test func `one run for all bursts takes no more names than may be queued, and counts the rest`() throws {
        let size = 4_096
        let all = try names(0..<WaitingRuns.limit + size)
        var waiting = WaitingRuns(.all)
        // Each one with half of the names of the one before.
        var bursts = stride(from: 0, to: WaitingRuns.limit, by: size / 2).map { start in
            Array(all[start..<min(start + size, WaitingRuns.limit)])
        }
        bursts += [Array(all.suffix(size)), [all[1]]]
        var accepted: [Bool] = []
        for burst in bursts { accepted.append(waiting.add(Run(burst, last: burst[0], count: 1))) }
        #expect(accepted == bursts.map { $0[0] != all[WaitingRuns.limit] })
        let runs = [waiting.popFirst(), waiting.popFirst()]
        let run = try #require(runs[0])
        #expect(run.names == Array(all.prefix(WaitingRuns.limit)))
        #expect(run.name == all[1] && run.count == bursts.count)
        #expect(runs[1]?.name == nil)
    }

    @Test func `the runs for each burst have about as many names as may be queued, together`() throws {
        let burst = try names(0..<4_096)
        var waiting = WaitingRuns(.none)
        func fill() -> Int {
            var count = 0
            while count < 100, waiting.add(Run(burst, last: burst[0], count: 1)) { count += 1 }
            return count
        }
        #expect(fill() == WaitingRuns.limit / burst.count)
        _ = waiting.popFirst()
        #expect(fill() == 1)
    }
}
