// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// Batteries, external power and the lid, as UPower has them, and what is posted of them. See org.freedesktop.UPower(7).
package struct PowerState: Equatable, Sendable {
    package static let any: NotifyName = "com.apple.system.powersources"
    package static let source: NotifyName = "com.apple.system.powersources.source"
    package static let percent: NotifyName = "com.apple.system.powersources.percent"
    package static let time: NotifyName = "com.apple.system.powersources.timeremaining"
    package static let low: NotifyName = "com.apple.system.powersources.lowbattery"
    package static let critical: NotifyName = "com.apple.system.powersources.criticallevel"
    package static let attach: NotifyName = "com.apple.system.powersources.attach"
    package static let lid: NotifyName = "com.apple.system.powermanagement.clamshellstate"

    /// What kind of device stands for all batteries.
    package enum Kind: Sendable {
        case none, battery, ups
    }

    package var isOnBattery = false
    package var isLidClosed = false
    package var kind = Kind.none
    /// From 0 to 100.
    package var percentage = 0.0
    package var isCharging = false
    package var isFull = false
    /// UPower's level: 3 is low, 4 critical, 5 so low that the machine acts.
    package var warning: UInt32 = 0
    /// Seconds until it is empty; 0 if unknown.
    package var timeToEmpty: Int64 = 0

    package init() {}

    private var isLow: Bool { warning >= 3 }
    private var isCritical: Bool { warning >= 4 }

    /// Bits of both states. Those and the others are of Darwin's IOPowerSourcesPrivate.h.
    private var commonBits: UInt64 { (isOnBattery ? 0 : 1 << 16) | (isCharging ? 1 << 17 : 0) }

    /// Without a battery the charge is not valid, and Darwin's code sees that it is unknown.
    package var percentBits: UInt64 {
        guard kind != .none else { return commonBits }
        // A value outside 0 to 100 is nonsense, and so is NaN.
        let charge = percentage > 0 ? UInt64(min(percentage, 100).rounded()) : 0
        return commonBits | charge | 1 << 19 | (isFull ? 1 << 21 : 0) | (isCritical ? 1 << 24 : 0)
    }

    package var timeBits: UInt64 {
        let minutes = isOnBattery ? UInt64(min(max(timeToEmpty, 0) / 60, 0xffff)) : 0
        let isUnknown = isOnBattery && timeToEmpty <= 0
        let source: UInt64 = isOnBattery ? (kind == .ups ? 3 : 2) : 1
        return commonBits | minutes | 1 << 19 | (isUnknown ? 1 << 18 : 0) | (kind == .battery ? 1 << 22 : 0)
            | (kind == .ups ? 1 << 23 : 0) | source << 56
    }

    /// A change of these bits alone is not worth a post to programs that follow the charge: charging, full, critical.
    private static let quietBits: UInt64 = 1 << 17 | 1 << 21 | 1 << 24

    /// What is to be said.
    ///
    /// - Parameters:
    ///   - old: what was the case before; nil if that is not known, and nothing has changed.
    ///   - isNew: whether the states are to be set whatever they were.
    package func changes(from old: PowerState?, isNew: Bool) -> [EventChange] {
        var changes: [EventChange] = []
        func note(_ name: NotifyName, _ bits: KeyPath<PowerState, UInt64>, ignoring quiet: UInt64 = 0) {
            let (new, before) = (self[keyPath: bits], old?[keyPath: bits])
            let isPosted = before.map { $0 & ~quiet != new & ~quiet } ?? false
            if isPosted || isNew || before != new { changes.append(EventChange(name, state: new, isPosted: isPosted)) }
        }
        note(PowerState.source, \.sourceBits)
        if let old {
            if isLow, !old.isLow { changes.append(EventChange(PowerState.low)) }
            if isCritical != old.isCritical { changes.append(EventChange(PowerState.critical)) }
        }
        note(PowerState.percent, \.percentBits, ignoring: PowerState.quietBits)
        note(PowerState.time, \.timeBits)
        if changes.contains(where: \.isPosted) { changes.append(EventChange(PowerState.any)) }
        note(PowerState.lid, \.lidBits)
        return changes
    }

    private var sourceBits: UInt64 { isOnBattery ? 0 : 1 }
    private var lidBits: UInt64 { isLidClosed ? 1 : 0 }
}
