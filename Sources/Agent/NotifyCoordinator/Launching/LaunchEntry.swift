// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What to start when a name is posted, as configured by an administrator or a user. See notifybus-launch(5).
package struct LaunchEntry: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
        /// A unit of the service manager.
        case unit(String)
        /// A program and its arguments, in a unit of its own.
        case command([String])
        /// A well-known name whose owner the bus starts.
        case activation(String)

        /// Whether it needs a service manager.
        package var needsManager: Bool { if case .activation = self { false } else { true } }
    }

    /// What to do with a post while the program is running and does not observe the name.
    package enum BusyRule: String, CaseIterable, Sendable {
        /// It is started once more afterwards.
        case queue
        case drop
        case restart
    }

    /// Whose posts count.
    package enum Trust: String, CaseIterable, Sendable {
        /// The agent's own user and root, outside of sandboxes.
        case user
        case anyone
        case root
    }

    /// How often it is started at most.
    package struct Limit: Hashable, Sendable {
        package var starts: Int
        /// Within how many nanoseconds.
        package var window: Int64

        package init(starts: Int, window: Int64) {
            self.starts = starts
            self.window = window
        }
    }

    /// What must be so before it is started: the state of a name is not 0, or it is.
    package struct Condition: Hashable, Sendable {
        package let name: NotifyName
        package let isNegated: Bool

        package init(_ name: NotifyName, isNegated: Bool) { (self.name, self.isNegated) = (name, isNegated) }

        /// - Parameter state: nil while it is not known; then no condition holds.
        package func holds(for state: UInt64?) -> Bool { state.map { ($0 == 0) == isNegated } ?? false }
    }

    /// The name of its file without `.conf`, by which it is known.
    package var title: String
    /// Its path.
    package var path = ""
    package var subjects = Subjects()
    package var action: Action
    /// All of them must hold.
    package var conditions: [Condition] = []
    package var onBusy = BusyRule.queue
    /// How long no more posts may come before it is started, in nanoseconds.
    package var settle: Int64 = 0
    package var limit = Limit(starts: 10, window: 10_000_000_000)
    /// For a command: `KEY=VALUE`.
    package var environment: [String] = []
    package var trust = Trust.user
    package var isEnabled = true

    package init(title: String, action: Action) {
        self.title = title
        self.action = action
    }

    /// Whether a service manager is to start it.
    package var runsByManager: Bool { action.needsManager && isEnabled }
}

/// An entry known to this agent. Numbers are never reused.
package struct LaunchID: Hashable, Comparable, Sendable {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    package static func < (left: LaunchID, right: LaunchID) -> Bool { left.number < right.number }
}
