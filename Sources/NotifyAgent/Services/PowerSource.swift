// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyEvents
import NotifyNames

/// Batteries, external power and the lid: UPower. Asking starts it.
enum PowerSource {
    private static let manager = PropertyClient.Object(
        path: "/org/freedesktop/UPower",
        interface: "org.freedesktop.UPower"
    )
    /// It stands for all batteries.
    private static let display = PropertyClient.Object(
        path: "/org/freedesktop/UPower/devices/DisplayDevice",
        interface: "org.freedesktop.UPower.Device"
    )

    static func make(_ reporter: EventReporter) -> [any ServiceClient] {
        let last = Monitor<(state: PowerState?, isLive: Bool)>((nil, false))
        return [
            PropertyClient(
                "org.freedesktop.UPower",
                "UPower",
                [manager, display],
                signals: ["interface='\(manager.interface)',path='\(manager.path)'"]
            ) { news in
                switch news {
                case .found(let values):
                    let new = state(values)
                    let changes = last.withLock { last in
                        defer { last = (new, true) }
                        return new.changes(from: last.state, isNew: !last.isLive)
                    }
                    if !changes.isEmpty { reporter.report(.found(changes)) }
                    reporter.report(.live)
                case .signal(let signal):
                    guard signal.member == "DeviceAdded" || signal.member == "DeviceRemoved" else { return }
                    reporter.report(.found([EventChange(PowerState.attach), EventChange(PowerState.any)]))
                case .away(let reason):
                    last.withLock { $0.isLive = false }
                    reporter.report(.off(reason))
                }
            }
        ]
    }

    private static func state(_ values: PropertyClient.Values) -> PowerState {
        var state = PowerState()
        if let values = values[manager] {
            state.isOnBattery = values["OnBattery"]?.boolean ?? false
            state.isLidClosed = values["LidIsClosed"]?.boolean ?? false
        }
        guard let values = values[display], values["IsPresent"]?.boolean == true else { return state }
        state.kind = values["Type"]?.uint32 == 3 ? .ups : .battery
        state.percentage = values["Percentage"]?.double ?? 0
        let charge = values["State"]?.uint32
        // Charging, or about to be; fully charged.
        state.isCharging = charge == 1 || charge == 5
        state.isFull = charge == 4
        state.warning = values["WarningLevel"]?.uint32 ?? 0
        state.timeToEmpty = values["TimeToEmpty"]?.int64 ?? 0
        return state
    }
}
