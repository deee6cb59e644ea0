// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A name with registrations: one observation on the bus for all of them.
///
/// `@unchecked Sendable`: the variables are touched only with the lock of the `TokenEngine` held.
final class NameRecord: @unchecked Sendable {
    enum Phase {
        /// Somebody is registering it with the bus.
        case opening
        case live
        case failed(NotifyStatus)
        /// It stands in the engine's table no more.
        case gone
    }

    let name: NotifyName
    /// How often it was posted.
    let posts: CheckTable.Counter
    var phase = Phase.opening
    var observation: NotifyCenter.Observation?
    /// The oldest first; gaps where one was cancelled.
    private(set) var registrations: [Registration?] = []
    private var positions: [Int32: Int] = [:]
    /// Since when there are no registrations; nil while there are.
    var idleSince: MonotonicTime?
    /// Whether the agent keeps a state that this process has set, and must be told at once when the name goes.
    var hasState = false
    /// The state of a name that begins with `self.`.
    var ownState: UInt64 = 0

    init(_ name: NotifyName, posts: CheckTable.Counter) {
        self.name = name
        self.posts = posts
    }

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
