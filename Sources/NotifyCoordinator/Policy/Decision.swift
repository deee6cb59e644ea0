// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What a connection is to be in, and who has decided it.
package struct Decision: Equatable, Sendable {
    package let state: LifecycleState
    package let decider: Decider

    package init(_ state: LifecycleState, by decider: Decider) {
        self.state = state
        self.decider = decider
    }
}

/// Who can decide what a connection is in. On the wire by ``name``.
package enum Decider: Hashable, Sendable {
    /// Somebody who called SetState: `notify-lifecycle`, a script, a desktop.
    case person
    /// The program itself, by Report.
    case program
    /// A source of facts, by its name.
    case source(String)
    /// The configuration keeps the application in the foreground.
    case exemption
    /// Nobody: everyone is in the foreground.
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

    /// Reads what an observer remembers of an agent that was there before.
    package init(name: String) {
        switch name {
        // An observer that does not say keeps what it is in, until somebody changes it.
        case "person", "": self = .person
        case "program": self = .program
        case "exempt": self = .exemption
        case "default": self = .rule
        default: self = .source(name)
        }
    }
}

/// All that is known of a connection when it is decided what it is to be in.
package struct Circumstances: Sendable {
    /// Whether the configuration keeps the application in the foreground.
    package var isExempt = false
    /// What a person has set, and has not released.
    package var person: LifecycleState?
    /// What the program has reported of itself.
    package var report: LifecycleState?
    /// What it was in under an agent before this one, by the word of a source that this agent has not heard yet.
    package var remembered: Decision?
    /// Which of the following facts concern the program, by its own wish or the user's.
    package var follows: FactPolicy.Facts = []
    /// The source that says that the machine goes to sleep.
    package var sleep: String?
    /// The source that says that the program's session is inactive or locked.
    package var absence: String?
    /// Whether the program has the focus, and which source says so; nil if no source knows.
    package var focus: (hasIt: Bool, source: String)?

    package init() {}

    /// The rule: a person, then the program, then those of the sources that it follows, then the foreground.
    ///
    /// A source can only take somebody out of the foreground. Where no source knows, nobody is taken out.
    package var decision: Decision {
        if isExempt {
            return report.map { Decision($0, by: .program) } ?? Decision(.foreground, by: .exemption)
        }
        if let person { return Decision(person, by: .person) }
        if let report { return Decision(report, by: .program) }
        if let remembered { return remembered }
        if follows.contains(.sleep), let sleep { return Decision(.background, by: .source(sleep)) }
        if follows.contains(.session), let absence { return Decision(.background, by: .source(absence)) }
        if follows.contains(.focus), let focus {
            return Decision(focus.hasIt ? .foreground : .background, by: .source(focus.source))
        }
        return Decision(.foreground, by: .rule)
    }
}
