// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyEvents
import NotifyNames

/// Low power mode and heat: the service of power profiles, under its newer name or under its older one.
enum ProfileSource {
    private static let lowPower: NotifyName = "com.apple.system.lowpowermode"
    private static let heat: NotifyName = "com.apple.system.thermalpressurelevel"

    private struct State {
        var mode = LastState(lowPower)
        var pressure = LastState(heat)
        /// What each name's owner says, or why it says nothing.
        var said: [Result<[String: BusValue], Obstacle>?] = [nil, nil]
    }

    private struct Obstacle: Error {
        let reason: String
    }

    static func make(_ reporter: EventReporter) -> [any ServiceClient] {
        let state = Monitor(State())
        return [
            ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"),
            ("org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles"),
        ].enumerated().map { index, service in
            let object = PropertyClient.Object(path: service.1, interface: service.0)
            return PropertyClient(service.0, "the power profiles service", [object]) { news in
                state.withLock { state in
                    switch news {
                    case .found(let values): state.said[index] = .success(values[object] ?? [:])
                    case .away(let reason): state.said[index] = .failure(Obstacle(reason: reason))
                    case .signal: return
                    }
                    tell(&state, reporter)
                }
            }
        }
    }

    private static func tell(_ state: inout State, _ reporter: EventReporter) {
        // Until both have said whether they are there, nothing is said.
        guard let first = state.said.compactMap({ try? $0?.get() }).first else {
            guard case .failure(let obstacle)? = state.said[0], state.said[1] != nil else { return }
            return reporter.report(.off(obstacle.reason))
        }
        state.mode.report(first["ActiveProfile"]?.string == "power-saver" ? 1 : 0, to: reporter)
        // Darwin's levels: nominal, moderate, heavy, trapping, sleeping.
        let isHot = first["PerformanceDegraded"]?.string == "high-operating-temperature"
        state.pressure.report(isHot ? 2 : 0, to: reporter)
        reporter.report(.live)
    }
}
