// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Batteries, external power and the lid: UPower. Asking starts it.
final class PowerSource: Source {
    private static let manager = PropertyClient.Object(
        path: "/org/freedesktop/UPower",
        interface: "org.freedesktop.UPower"
    )
    /// It stands for all batteries.
    private static let display = PropertyClient.Object(
        path: "/org/freedesktop/UPower/devices/DisplayDevice",
        interface: "org.freedesktop.UPower.Device"
    )

    private let bus: any ServiceBus
    private weak var driver: SourceDriver?
    private var client: PropertyClient?
    private var last: PowerState?
    /// Whether it has reported the states since it was away.
    private var isLive = false

    init(on bus: any ServiceBus) { self.bus = bus }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        let client = PropertyClient(
            "org.freedesktop.UPower",
            "UPower",
            [PowerSource.manager, PowerSource.display],
            signals: ["interface='\(PowerSource.manager.interface)',path='\(PowerSource.manager.path)'"]
        ) { [weak self] news in self?.take(news) }
        self.client = client
        bus.add(client)
    }

    func end() {
        if let client { bus.remove(client) }
        (client, driver, isLive) = (nil, nil, false)
    }

    private func take(_ news: PropertyClient.News) {
        switch news {
        case .found(let values):
            let new = PowerSource.state(values)
            let changes = new.changes(from: last, isNew: !isLive)
            (last, isLive) = (new, true)
            if !changes.isEmpty { driver?.report(.found(changes)) }
            driver?.isLive()
        case .signal(let signal):
            guard signal.member == "DeviceAdded" || signal.member == "DeviceRemoved" else { return }
            driver?.report(.found([EventChange(PowerState.attach), EventChange(PowerState.any)]))
        case .away(let reason), .silent(let reason):
            isLive = false
            driver?.isOff(reason)
        }
    }

    private static func state(_ values: PropertyClient.Values) -> PowerState {
        var state = PowerState()
        if let values = values[manager] {
            state.isOnBattery = values["OnBattery"]?.boolean ?? false
            state.isLidClosed = values["LidIsClosed"]?.boolean ?? false
        }
        guard let values = values[display], values["IsPresent"]?.boolean == true else { return state }
        let percentage = values["Percentage"]?.double ?? 0
        let charge = values["State"]?.uint32 ?? 0
        // UPower has not read the battery yet, or can't: that says no more than none at all.
        if charge == 0, percentage == 0 { return state }
        state.kind = values["Type"]?.uint32 == 3 ? .ups : .battery
        state.percentage = percentage
        // Charging, or about to be; fully charged.
        state.isCharging = charge == 1 || charge == 5
        state.isFull = charge == 4
        state.warning = values["WarningLevel"]?.uint32 ?? 0
        state.timeToEmpty = values["TimeToEmpty"]?.int64 ?? 0
        return state
    }
}
