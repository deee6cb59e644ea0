// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

/// Several posters at full speed, with observers of which half are slow. With `NOTIFYBUS_LONG=1` in the environment
/// each posts 250,000 times, which takes minutes, and with `NOTIFYBUS_STORM=N` N times.
@Suite(.serialized) struct StormTests {
    private static let posters = 4
    private static let posts =
        getenv("NOTIFYBUS_STORM").flatMap { Int(String(cString: $0)) } ?? (isLongRun ? 250_000 : 1_000)
    /// How much the bus may grow, in bytes.
    private static let room = (isLongRun ? 64 : 32) << 20

    private struct Listener {
        let center: NotifyCenter
        let observation: NotifyCenter.Observation
        let lasts = Counter()
        let losses = Counter()

        init(_ bus: PrivateBus, delay: useconds_t) throws {
            let (lasts, losses) = (lasts, losses)
            center = NotifyCenter(bus: .address(bus.address)) { change in
                if change.kind == .disconnected { losses.add() }
            }
            let names = try (0..<posters).flatMap { poster in
                try ["a", "b", "c", "last"].map { try NotifyName("com.example.storm.p\(poster).\($0)") }
            }
            observation = try center.addObserver(matching: .names(names), timeout: .seconds(25)) { name in
                if delay > 0 { usleep(delay) }
                if name.string.hasSuffix(".last") { lasts.add() }
            }
        }
    }

    @Test(arguments: busKinds)
    func `a storm of four posters disconnects nobody, and every observer hears the last name of each`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let listeners = try (0..<20).map { try Listener(bus, delay: $0 % 2 == 0 ? 1_000 : 0) }
        let before = bus.residentBytes
        let peak = Counter()
        let mayEnd = Counter()
        startThread {
            while mayEnd.value == 0 {
                let growth = bus.residentBytes - before
                if growth > peak.value { peak.add(growth - peak.value) }
                usleep(5_000)
            }
        }
        let commands = try (0..<StormTests.posters).map { poster in
            let name = "com.example.storm.p\(poster)"
            let script = "(yes '\(name).a\n\(name).b\n\(name).c' | head -n \(StormTests.posts); echo \(name).last)"
            return try start(
                "sh",
                ["-c", "\(script) | \"$0\" --address \"$1\" -", productPath("notify-post"), bus.address]
            )
        }
        for command in commands {
            let result = try command.wait(timeout: .seconds(isLongRun ? 3_600 : 600))
            #expect(result.status == 0 && result.errorOutput.isEmpty, "\(result.errorOutput)")
        }
        for listener in listeners { #expect(listener.lasts.wait(for: StormTests.posters, timeout: .patience)) }
        mayEnd.add()
        #expect(listeners.allSatisfy { $0.losses.value == 0 && $0.center.statistics.forcedDisconnects == 0 })
        #expect(peak.value < StormTests.room, "the bus grew by \(peak.value) bytes")
        // Slow ones get one delivery for many posts; nothing is dropped.
        #expect(listeners.allSatisfy { $0.center.statistics.lost == 0 })
        for listener in listeners { listener.observation.cancel() }
    }
}
