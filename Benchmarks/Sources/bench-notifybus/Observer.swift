// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import NotifyBus

/// How an observer receives names.
enum ObserverStyle: String {
    case callback
    case queue
    case sequence
    case once
    /// Each name with a center, and so a connection, of its own.
    case centers
}

/// Observes `prefix`, or that many names below it, and reports what arrives. Returns only when the bus goes away.
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

    // With the blocking calls, but for the sequence, which has none.
    let registered =
        style == .sequence
        ? try await registerSequence(of: names[0], firstName: NotifyName("\(prefix).first"), in: center)
        : try register(names, firstName: NotifyName("\(prefix).first"), in: center, style, reporter)
    reporter.write(registered.live, registered.live - registered.began)

    if let notifications = registered.notifications {
        // Like a program whose main thread is busy otherwise. On the main actor two more threads would wake up.
        await Task.detached {
            for await name in notifications { reporter.delivered(name) }
        }.value
    }
    while true {
        try await Task.sleep(for: .seconds(86400))
        withExtendedLifetime(registered) {}
    }
}

/// How long the bus may take to confirm a registration.
private let limit = Duration.seconds(25)

private struct Registered {
    let began: Int
    let live: Int
    let observations: [NotifyCenter.Observation]
    let notifications: NotifyCenter.Notifications?
}

private func registerSequence(
    of name: NotifyName,
    firstName: NotifyName,
    in center: NotifyCenter
) async throws -> Registered {
    let observations = [try await center.addObserver(for: firstName) { _ in }]
    let began = now()
    let notifications = try await center.notifications(for: name)
    return Registered(began: began, live: now(), observations: observations, notifications: notifications)
}

private func register(
    _ names: [NotifyName],
    firstName: NotifyName,
    in center: NotifyCenter,
    _ style: ObserverStyle,
    _ reporter: Reporter
) throws -> Registered {
    // The center connects with its first observer; the peers are connected by now.
    var observations = [try center.addObserver(for: firstName, timeout: limit) { _ in }]
    let began = now()
    switch style {
    case .callback:
        for name in names {
            observations.append(try center.addObserver(for: name, timeout: limit, using: reporter.delivered))
        }
    case .queue:
        let queue = DispatchQueue(label: "bench")
        for name in names {
            observations.append(
                try center.addObserver(for: name, queue: queue, timeout: limit, using: reporter.delivered)
            )
        }
    case .once:
        observations += [try center.addObserver(matching: .names(names), timeout: limit, using: reporter.delivered)]
    case .centers:
        // An observation keeps its center.
        for name in names {
            let own = NotifyCenter(bus: center.bus)
            observations.append(try own.addObserver(for: name, timeout: limit, using: reporter.delivered))
        }
    case .sequence: break
    }
    return Registered(began: began, live: now(), observations: observations, notifications: nil)
}
