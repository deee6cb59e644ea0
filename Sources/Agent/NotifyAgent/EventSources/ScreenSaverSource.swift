// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// Screen savers on the session bus, for desktops that do not tell logind that they have locked the screen.
final class ScreenSaverSource: Source {
    /// By which the agent knows it. It is not listed: it is part of what reports the lock.
    static let name = "screensaver"

    /// Names on the bus, which their interfaces have as well, and where the object is.
    private static let savers = [
        ("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver"),
        ("org.gnome.ScreenSaver", "/org/gnome/ScreenSaver"),
        ("org.cinnamon.ScreenSaver", "/org/cinnamon/ScreenSaver"),
        ("org.mate.ScreenSaver", "/org/mate/ScreenSaver"),
    ]

    fileprivate enum Condition: Equatable {
        case away, idle, active
        /// It has not answered, so this reason.
        case silent(String)
    }

    private let bus: any ServiceBus
    private weak var driver: SourceDriver?
    private var clients: [ScreenSaver] = []
    private var conditions: [String: Condition] = [:]

    init(on bus: any ServiceBus) { self.bus = bus }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        clients = ScreenSaverSource.savers.map { name, path in
            ScreenSaver(name, path) { [weak self] condition in self?.note(name, condition) }
        }
        for client in clients { bus.add(client) }
    }

    func end() {
        for client in clients { bus.remove(client) }
        (clients, conditions, driver) = ([], [:], nil)
    }

    /// Reports whether one is active, when that is known of all.
    private func note(_ name: String, _ condition: Condition) {
        conditions[name] = condition
        guard conditions.count == ScreenSaverSource.savers.count else { return }
        for case .silent(let reason) in conditions.values { return driver?.isOff(reason) ?? () }
        let isThere = conditions.values.contains { $0 != .away }
        if isThere { driver?.isLive() } else { driver?.isOff("no screen saver is running") }
        driver?.report(.fact(.screenSaver(isActive: conditions.values.contains(.active))))
    }
}

private final class ScreenSaver: ServiceClient {
    let service: FollowedService
    private let path: String
    private let tell: (ScreenSaverSource.Condition) -> Void
    /// Whether a signal has come since it was asked: the answer is older than that.
    private var isAnswered = false

    init(_ name: String, _ path: String, tell: @escaping (ScreenSaverSource.Condition) -> Void) {
        // KDE's has two objects, and says it of both.
        let signal = "interface='\(name)',member='ActiveChanged'"
        service = FollowedService(name: name, title: "the screen saver", signals: [signal])
        (self.path, self.tell) = (path, tell)
    }

    func serviceHasCome(_ service: Service) {
        isAnswered = false
        service.call("GetActive", of: self.service.name, at: path) { [self] answer in
            let values = try? answer.get()
            values?.closeDescriptors()
            // One that can't say so is none that locks.
            if !isAnswered { tell(values?.first?.boolean == true ? .active : .idle) }
        }
    }

    func handle(_ signal: BusSignal) {
        guard signal.interface == service.name, signal.member == "ActiveChanged",
            let isActive = signal.arguments.first?.boolean
        else { return }
        isAnswered = true
        tell(isActive ? .active : .idle)
    }

    func serviceIsAway(_ reason: String) { tell(.away) }
    /// It is not known whether it is active, and its last report stays.
    func serviceIsSilent(_ reason: String) { tell(.silent(reason)) }
}
