// SPDX-License-Identifier: Apache-2.0

/// Which programs the desktop's facts apply to, as set in the configuration file.
///
/// The rule is the same for each kind of fact: it can put a program in the background only if the program has opted in
/// to following the desktop, or the user has configured that.
package struct FactPolicy: Sendable {
    /// Kinds of facts.
    package struct Facts: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Whether the program has the focus.
        package static let focus = Facts(rawValue: 1)
        /// Whether its login session is active and not locked.
        package static let session = Facts(rawValue: 2)
        /// Whether the machine is going to sleep.
        package static let sleep = Facts(rawValue: 4)
    }

    /// Which programs one kind of fact applies to.
    package struct Followers: Sendable {
        package enum Others: Sendable {
            /// Programs that have opted in to following the desktop.
            case asking
            case everyone
            case nobody
        }

        /// Applications to which it applies in any case.
        package var applications: Set<String> = []
        /// To which of all others it applies.
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
    /// By default nobody: even a program that follows the desktop may have something to do just before.
    package var sleep = Followers(others: .nobody)
    /// The sources that are not to be used, by name.
    package var ignoredSources: Set<String> = []

    package init() {}

    /// The facts that apply to a program.
    ///
    /// - Parameters:
    ///   - application: the application that it belongs to; empty if none.
    ///   - asks: whether it has opted in to following the desktop.
    package func facts(for application: String, asks: Bool) -> Facts {
        var facts: Facts = []
        if focus.includes(application, asks: asks) { facts.insert(.focus) }
        if session.includes(application, asks: asks) { facts.insert(.session) }
        if sleep.includes(application, asks: asks) { facts.insert(.sleep) }
        return facts
    }
}
