// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import TestSupport
import Testing

@Suite struct TestsRunOnBothDaemons {
    @Test(.disabled(if: BusKind.daemon.unavailable != nil, "\(BusKind.daemon.unavailable ?? "")"))
    func `dbus-daemon can be started here`() { #expect(busKinds.contains(.daemon)) }

    @Test(.disabled(if: BusKind.broker.unavailable != nil, "\(BusKind.broker.unavailable ?? "")"))
    func `dbus-broker can be started here`() { #expect(busKinds.contains(.broker)) }
}

extension PrivateBus {
    /// A new center on this bus.
    func makeCenter(
        onConnectionChange: (@Sendable (NotifyCenter.ConnectionChange) -> Void)? = nil
    ) -> NotifyCenter {
        NotifyCenter(bus: .address(address), onConnectionChange: onConnectionChange)
    }
}

extension NotifyCenter {
    /// Posts the same name this many times, with at most 1,000 posts that the counter has not seen.
    func post(_ name: NotifyName, times: Int, heardBy counters: [Counter], starting: Int = 0) throws {
        for posted in stride(from: 0, to: times, by: 500) {
            for _ in posted..<min(posted + 500, times) { try post(name) }
            for counter in counters {
                try #require(counter.wait(for: starting + posted - 500, timeout: .patience))
            }
        }
    }
}

/// Runs `body` in this many threads at once, and waits for all of them.
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

/// From now on, whether the 10 seconds that a bus has may be over. A machine that is so busy proves nothing.
func lateness() -> () -> Bool {
    let began = ContinuousClock.now
    return { ContinuousClock.now - began > .seconds(9) }
}
