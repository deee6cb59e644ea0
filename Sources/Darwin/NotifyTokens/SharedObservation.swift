// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// One observation of a name on the bus, shared by all registrations of the name in this process: those of notify(3)
/// and those of Core Foundation's center.
///
/// `@unchecked Sendable`: the variables are touched only with the lock of the `TokenEngine` held.
final class SharedObservation: @unchecked Sendable {
    enum Phase {
        /// A thread is registering it with the bus.
        case opening
        /// It is registered as soon as there is a bus; this is why it is not yet.
        case waiting(NotifyBusError)
        case live
        case failed(NotifyBusError)
        /// It is no longer in the engine's table.
        case gone
    }

    let name: NotifyName
    /// How often it was posted.
    let posts: CheckTable.Counter
    var phase = Phase.opening
    /// The phase that follows `opening`, if the center has said so before the thread could go on that registers it.
    var settled: Phase?
    var observation: NotifyCenter.Observation?
    /// The oldest first, with gaps where one was cancelled.
    private(set) var registrations: [Registration?] = []
    private var positions: [Int32: Int] = [:]
    /// When the last registration was cancelled; nil while there are registrations.
    var idleSince: MonotonicTime?
    /// Whether the agent keeps a state that this process has set, so that it must be notified immediately when the name
    /// goes.
    var hasState = false
    /// The state of a name that begins with `self.`.
    var ownState: UInt64 = 0

    init(_ name: NotifyName, posts: CheckTable.Counter) {
        self.name = name
        self.posts = posts
    }

    var count: Int { positions.count }
    var isEmpty: Bool { positions.isEmpty }
    var needsBus: Bool { !name.staysInProcess }

    func add(_ registration: Registration) {
        positions[registration.token] = registrations.count
        registrations.append(registration)
    }

    func remove(_ registration: Registration) {
        guard let position = positions.removeValue(forKey: registration.token) else { return }
        registrations[position] = nil
        if positions.isEmpty {
            registrations = []
        } else if registrations.count > 32, registrations.count > positions.count * 2 {
            registrations.removeAll { $0 == nil }
            for (index, registration) in registrations.enumerated() {
                if let registration { positions[registration.token] = index }
            }
        }
    }
}
