// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// Low power mode and heat: the service of power profiles, under its newer name or under its older one.
final class ProfileSource: Source {
    private static let services = [
        ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"),
        ("org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles"),
    ]

    private struct Absence: Error {
        let reason: String
        /// Whether there is such a service.
        let isThere: Bool
    }

    private let bus: any ServiceBus
    private weak var driver: SourceDriver?
    private var clients: [PropertyClient] = []
    private var mode = LastState("com.apple.system.lowpowermode")
    private var pressure = LastState("com.apple.system.thermalpressurelevel")
    /// What each name's owner says, or why it says nothing.
    private var said: [Result<[String: BusValue], Absence>?] = [nil, nil]

    init(on bus: any ServiceBus) { self.bus = bus }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        clients = ProfileSource.services.enumerated().map { index, service in
            let object = PropertyClient.Object(path: service.1, interface: service.0)
            return PropertyClient(service.0, "the power profiles service", [object]) { [weak self] news in
                switch news {
                case .found(let values): self?.said[index] = .success(values[object] ?? [:])
                case .away(let reason): self?.said[index] = .failure(Absence(reason: reason, isThere: false))
                case .silent(let reason): self?.said[index] = .failure(Absence(reason: reason, isThere: true))
                case .signal: return
                }
                self?.tell()
            }
        }
        for client in clients { bus.add(client) }
    }

    func end() {
        for client in clients { bus.remove(client) }
        (clients, driver, said) = ([], nil, [nil, nil])
    }

    private func tell() {
        // Until both have said whether they are there, nothing is said.
        guard let first = said.compactMap({ try? $0?.get() }).first else {
            guard said.allSatisfy({ $0 != nil }) else { return }
            let absences = said.compactMap { if case .failure(let absence)? = $0 { absence } else { nil } }
            if let absence = absences.first(where: \.isThere) ?? absences.first { driver?.isOff(absence.reason) }
            return
        }
        mode.report(first["ActiveProfile"]?.string == "power-saver" ? 1 : 0, to: driver)
        // Darwin's levels: nominal, moderate, heavy, trapping, sleeping.
        let isHot = first["PerformanceDegraded"]?.string == "high-operating-temperature"
        pressure.report(isHot ? 2 : 0, to: driver)
        driver?.isLive()
    }
}
