// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import NotifyBus

/// How an observer hears.
enum ObserverStyle: String {
    case callback
    case queue
    case sequence
    case once
}

/// Observes `prefix`, or that many names below it, and reports what arrives. Does not return while the bus is there.
func observe(
    prefix: String,
    count: Int,
    at address: String,
    _ style: ObserverStyle,
    _ reporter: Reporter
) async throws {
    let center = NotifyCenter(bus: .address(address))
    var names = try count == 1 ? [NotifyName(prefix)] : (0..<count).map { try NotifyName("\(prefix).n\($0)") }
    if case .end = reporter.report { names.append(try NotifyName("\(prefix).end")) }

    // The center connects with its first observer; the peers are connected by now.
    let first = try center.addObserver(forName: "\(prefix).first") { _ in }
    let began = now()
    var observations: [NotifyCenter.Observation] = []
    var notifications: NotifyCenter.Notifications?
    switch style {
    case .callback:
        for name in names { observations.append(try center.addObserver(forName: name, using: reporter.delivered)) }
    case .queue:
        let queue = DispatchQueue(label: "bench")
        for name in names {
            observations.append(try center.addObserver(forName: name, queue: queue, using: reporter.delivered))
        }
    case .once: observations = [try center.addObserver(forNames: names, using: reporter.delivered)]
    case .sequence: notifications = try center.notifications(named: names[0])
    }
    let live = now()
    reporter.write(live, live - began)

    if let notifications {
        for await name in notifications { reporter.delivered(name) }
    }
    while true {
        try await Task.sleep(for: .seconds(86400))
        withExtendedLifetime((first, observations)) {}
    }
}
