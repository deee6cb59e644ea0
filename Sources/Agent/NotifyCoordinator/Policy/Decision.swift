// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The state decided for a connection, and who decided it.
package struct Decision: Hashable, Sendable {
    package let state: LifecycleState
    package let decider: Decider

    package init(_ state: LifecycleState, by decider: Decider) {
        self.state = state
        self.decider = decider
    }
}

/// Who can decide on a connection's state. On the wire by ``name``.
package enum Decider: Hashable, Sendable {
    /// A caller of SetState: `notify-lifecycle`, a script, a desktop.
    case person
    /// The program itself, by Report.
    case program
    /// A source of facts, by its name.
    case source(String)
    /// The configuration keeps the application in the foreground.
    case exemption
    /// None has: the default is the foreground.
    case rule

    package var name: String {
        switch self {
        case .person: "person"
        case .program: "program"
        case .source(let name): name
        case .exemption: "exempt"
        case .rule: "default"
        }
    }

    /// Parses what an observer remembers of an earlier agent.
    package init(name: String) {
        switch name {
        // If an observer does not say, it keeps its state until a person changes it.
        case "person", "": self = .person
        case "program": self = .program
        case "exempt": self = .exemption
        case "default": self = .rule
        default: self = .source(name)
        }
    }
}

/// Everything known about a connection when its state is decided.
package struct Circumstances: Sendable {
    /// Whether the configuration keeps the application in the foreground.
    package var isExempt = false
    /// What a person has set and not released.
    package var person: LifecycleState?
    /// The state that the program has reported.
    package var report: LifecycleState?
    /// Its state under an earlier agent, by the word of a source that this agent has not heard yet.
    package var remembered: Decision?
    /// The state that a nap gives it.
    package var nap: LifecycleState?
    /// Which of the following facts apply to the program, by its own choice or the user's.
    package var follows: FactPolicy.Facts = []
    /// The source that reports that the machine is going to sleep.
    package var sleep: String?
    /// The source that reports that the program's session is inactive or locked.
    package var absence: String?
    /// Whether the program has the focus, and the source that reports that; nil if no source knows.
    package var focus: (hasIt: Bool, source: String)?

    package init() {}

    /// The rule: a person, then the program, then a nap, then the sources that it follows, then the foreground.
    ///
    /// A source can only take a program out of the foreground. If no source knows, it stays there.
    package var decision: Decision {
        if isExempt {
            return report.map { Decision($0, by: .program) } ?? Decision(.foreground, by: .exemption)
        }
        if let person { return Decision(person, by: .person) }
        if let report { return Decision(report, by: .program) }
        if let remembered { return remembered }
        if let nap { return Decision(nap, by: Naps.decider) }
        if follows.contains(.sleep), let sleep { return Decision(.background, by: .source(sleep)) }
        if follows.contains(.session), let absence { return Decision(.background, by: .source(absence)) }
        if follows.contains(.focus), let focus {
            return Decision(focus.hasIt ? .foreground : .background, by: .source(focus.source))
        }
        return Decision(.foreground, by: .rule)
    }
}

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
    /// By default to none: even a program that follows the desktop may have something to do just before.
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
