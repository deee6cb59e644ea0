// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// How a connection enters a bus, and that it does whatever the bus expects.
@Suite struct EntryTests {
    /// Whether a post from a center at this address reaches an observer there.
    private func isHeard(at address: String) throws -> Bool {
        let center = NotifyCenter(bus: .address(address))
        defer { try? center.close(timeout: nil) }
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.entry", timeout: .seconds(25)) { _ in heard.add() }
        defer { observation.cancel() }
        try center.postOnceConnected("com.example.entry")
        return heard.wait(for: 1)
    }

    @Test(arguments: busKinds)
    func `a bus that wants one line at a time is entered all the same`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address, .wantsOneLineAtATime)
        defer { relay.close() }
        #expect(try isHeard(at: relay.address))
    }

    @Test(arguments: busKinds)
    func `the answers of a bus may arrive byte by byte`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address, .dribbles)
        defer { relay.close() }
        #expect(try isHeard(at: relay.address))
    }

    @Test(arguments: busKinds)
    func `a bus with another GUID than its address says is not entered`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let address = bus.address.prefix { $0 != "," } + ",guid=" + String(repeating: "0", count: 32)
        let center = NotifyCenter(bus: .address(String(address)))
        let error = #expect(throws: NotifyBusError.self) { try center.postOnceConnected("com.example.entry") }
        #expect(error?.code == .noBus)
    }

    @Test(arguments: busKinds)
    func `a path with escaped bytes leads to the bus`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        #expect(try isHeard(at: bus.address.replacing("/", with: "%2f")))
    }
}
