// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import TestSupport
import Testing

/// Both bus daemons; one that cannot run here is left out, and `TestsRunOnBothDaemons` says why.
let busKinds = BusKind.available

@Suite struct TestsRunOnBothDaemons {
    @Test(arguments: BusKind.allCases)
    func `the daemon can be started here`(kind: BusKind) throws {
        if let reason = kind.unavailable { try Test.cancel("\(reason)") }
        #expect(busKinds.contains(kind))
    }
}

extension PrivateBus {
    /// A center of its own on this bus.
    func makeCenter(
        onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)? = nil
    ) -> NotifyCenter {
        NotifyCenter(bus: .address(address), onConnectionChange: onConnectionChange)
    }
}

extension NotifyCenter {
    /// Posts the same name so many times without ever having more than 1,000 that the counter has not seen.
    func post(_ name: NotifyName, times: Int, heardBy counters: [Counter], starting: Int = 0) throws {
        for posted in stride(from: 0, to: times, by: 500) {
            for _ in posted..<min(posted + 500, times) { try post(name) }
            for counter in counters {
                try #require(counter.wait(for: starting + posted - 500, timeout: .patience))
            }
        }
    }
}

/// Runs `body` in so many threads at once, and waits for all of them.
func concurrently(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let finished = Counter()
    for number in 0..<count {
        startThread {
            body(number)
            finished.add()
        }
    }
    _ = finished.wait(for: count, timeout: .patience * 5)
}
