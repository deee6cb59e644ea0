// SPDX-License-Identifier: Apache-2.0

/// Whom the desktop's facts concern. What the configuration file sets.
///
/// The rule is the same for each kind of fact: it can put a program into the background only if the program has asked to
/// follow the desktop, or the user has said so.
package struct FactPolicy: Sendable {
    /// Kinds of facts.
    package struct Facts: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Whether the program has the focus.
        package static let focus = Facts(rawValue: 1)
        /// Whether its login session is active and not locked.
        package static let session = Facts(rawValue: 2)
        /// Whether the machine goes to sleep.
        package static let sleep = Facts(rawValue: 4)
    }

    /// Whom one kind of fact concerns.
    package struct Followers: Sendable {
        package enum Others: Sendable {
            /// Programs that have asked to follow the desktop.
            case asking
            case everyone
            case nobody
        }

        /// Applications that it concerns in any case.
        package var applications: Set<String> = []
        /// Whom it concerns among all others.
        package var others: Others

        package init(others: Others = .asking) {
            self.others = others
        }

        fileprivate func includes(_ application: String, asks: Bool) -> Bool {
            if !application.isEmpty, applications.contains(application) { return true }
            return switch others {
            case .asking: asks
            case .everyone: true
            case .nobody: false
            }
        }
    }

    package var focus = Followers()
    package var session = Followers()
    /// Nobody if it is not set: even a program that follows the desktop may have something to do just before.
    package var sleep = Followers(others: .nobody)
    /// The sources that are not to be asked at all, by name.
    package var ignoredSources: Set<String> = []

    package init() {}

    /// The facts that concern a program.
    ///
    /// - Parameters:
    ///   - application: the application that it belongs to; empty if none.
    ///   - asks: whether it has asked to follow the desktop.
    package func facts(for application: String, asks: Bool) -> Facts {
        var facts: Facts = []
        if focus.includes(application, asks: asks) { facts.insert(.focus) }
        if session.includes(application, asks: asks) { facts.insert(.session) }
        if sleep.includes(application, asks: asks) { facts.insert(.sleep) }
        return facts
    }
}
