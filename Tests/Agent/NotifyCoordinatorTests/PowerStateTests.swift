// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames
import Testing

/// What is posted of batteries, external power and the lid, as values.
@Suite struct PowerStateTests {
    /// A laptop on battery, with an hour and a minute left.
    private static let laptop = changed(PowerState()) { state in
        (state.kind, state.isOnBattery, state.percentage, state.timeToEmpty) = (.battery, true, 57, 3_660)
    }

    private static func changed(_ state: PowerState, _ change: (inout PowerState) -> Void) -> PowerState {
        var state = state
        change(&state)
        return state
    }

    /// What is posted when a laptop changes, and what becomes known beside it, in order.
    private func changes(_ change: (inout PowerState) -> Void) -> [EventChange] {
        PowerStateTests.changed(PowerStateTests.laptop, change).changes(from: PowerStateTests.laptop, isNew: false)
    }

    /// A number with some bits set as well.
    private func word(_ number: UInt64, _ bits: UInt64...) -> UInt64 { bits.reduce(number) { $0 | (1 << $1) } }

    @Test func `the charge has Darwin's bits`() {
        func bits(_ change: (inout PowerState) -> Void) -> UInt64 {
            PowerStateTests.changed(PowerStateTests.laptop, change).percentBits
        }
        // A desktop: external power, and no charge.
        #expect(PowerState().percentBits == 1 << 16)
        #expect(bits { $0.kind = .none } == 0)
        #expect(bits { _ in } == word(57, 19))
        #expect(bits { $0.kind = .ups } == word(57, 19))
        #expect(bits { ($0.isOnBattery, $0.isCharging) = (false, true) } == word(57, 19, 16, 17))
        #expect(bits { $0.isFull = true } == word(57, 19, 21))
        #expect(bits { $0.warning = 3 } == word(57, 19))
        #expect(bits { $0.warning = 4 } == word(57, 19, 24))
        #expect(bits { $0.warning = 5 } == word(57, 19, 24))
        let nonsense: [(Double, UInt64)] = [(250, 100), (-3, 0), (.nan, 0), (.infinity, 100), (0.4, 0), (99.6, 100)]
        for (percentage, charge) in nonsense {
            #expect(bits { $0.percentage = percentage } == word(charge, 19), "\(percentage)")
        }
    }

    @Test func `the time that remains has Darwin's bits`() {
        func bits(_ change: (inout PowerState) -> Void) -> UInt64 {
            PowerStateTests.changed(PowerStateTests.laptop, change).timeBits
        }
        #expect(PowerState().timeBits == word(0, 16, 19, 56))
        #expect(bits { _ in } == word(61, 19, 22, 57))
        #expect(bits { $0.kind = .ups } == word(61, 19, 23, 56, 57))
        #expect(bits { $0.kind = .none } == word(61, 19, 57))
        // On external power it is not counted.
        #expect(
            bits { ($0.isOnBattery, $0.isCharging) = (false, true) }
                == word(0, 16, 17, 19, 22, 56)
        )
        #expect(bits { ($0.isOnBattery, $0.timeToEmpty) = (false, 0) } == word(0, 16, 19, 22, 56))
        for unknown: Int64 in [0, -5, .min] {
            #expect(bits { $0.timeToEmpty = unknown } == word(0, 18, 19, 22, 57))
        }
        #expect(bits { $0.timeToEmpty = 1 } == word(0, 19, 22, 57))
        #expect(bits { $0.timeToEmpty = .max } == word(0xffff, 19, 22, 57))
    }

    @Test func `what is new is known without a post, and what is the same is not said again`() {
        let laptop = PowerStateTests.laptop
        let all = [
            EventChange(PowerState.source, state: 0, isPosted: false),
            EventChange(PowerState.percent, state: laptop.percentBits, isPosted: false),
            EventChange(PowerState.time, state: laptop.timeBits, isPosted: false),
            EventChange(PowerState.lid, state: 0, isPosted: false),
        ]
        #expect(laptop.changes(from: nil, isNew: true) == all)
        #expect(laptop.changes(from: nil, isNew: false) == all)
        #expect(laptop.changes(from: laptop, isNew: true) == all)
        #expect(laptop.changes(from: laptop, isNew: false).isEmpty)
    }

    @Test func `each change is posted under its own name, and under the one for all`() {
        let laptop = PowerStateTests.laptop
        let any = EventChange(PowerState.any)
        #expect(
            changes { $0.percentage = 56 } == [EventChange(PowerState.percent, state: laptop.percentBits - 1), any]
        )
        #expect(
            changes { $0.timeToEmpty -= 60 } == [EventChange(PowerState.time, state: laptop.timeBits - 1), any]
        )
        #expect(
            changes { $0.isOnBattery = false } == [
                EventChange(PowerState.source, state: 1),
                EventChange(PowerState.percent, state: laptop.percentBits | word(0, 16)),
                EventChange(PowerState.time, state: word(0, 16, 19, 22, 56)), any,
            ]
        )
        // Those who follow the charge are not woken because it is full, or is being charged.
        #expect(
            changes { $0.isFull = true } == [
                EventChange(PowerState.percent, state: laptop.percentBits | word(0, 21), isPosted: false)
            ]
        )
        #expect(
            changes { $0.isCharging = true } == [
                EventChange(PowerState.percent, state: laptop.percentBits | word(0, 17), isPosted: false),
                EventChange(PowerState.time, state: laptop.timeBits | word(0, 17)), any,
            ]
        )
        #expect(changes { $0.isLidClosed = true } == [EventChange(PowerState.lid, state: 1)])
    }

    @Test func `a low battery is said once, and a critical one when it begins and when it ends`() {
        func step(_ old: UInt32, _ new: UInt32) -> [NotifyName] {
            let before = PowerStateTests.changed(PowerStateTests.laptop) { $0.warning = old }
            let after = PowerStateTests.changed(PowerStateTests.laptop) { $0.warning = new }
            return after.changes(from: before, isNew: false).filter(\.isPosted).map(\.name)
        }
        #expect(step(1, 2).isEmpty)
        #expect(step(2, 3) == [PowerState.low, PowerState.any])
        #expect(step(3, 2).isEmpty)
        #expect(step(3, 4) == [PowerState.critical, PowerState.any])
        #expect(step(4, 5).isEmpty)
        #expect(step(5, 3) == [PowerState.critical, PowerState.any])
        #expect(step(1, 5) == [PowerState.low, PowerState.critical, PowerState.any])
    }
}
