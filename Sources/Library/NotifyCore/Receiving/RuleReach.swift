// SPDX-License-Identifier: Apache-2.0

/// The match rules that a connection has on the bus.
///
/// Usually one for each name. Beyond the limit of the bus (512 per connection on a default system bus), one that matches every
/// post; unwanted posts are then discarded here. A spare rule that matches nothing is given up for it, so that no name goes
/// unheard during the change.
package struct RuleReach: Hashable {
    package enum Mode {
        /// One rule per name.
        case narrow
        /// The wide rules have been sent; the others are still in place.
        case widening
        /// Only the wide rules are in place.
        case wide
        /// The wide rules are in place; one rule per name has been sent again.
        case narrowing
    }

    /// What the last reply to a change of mode means.
    package enum Outcome {
        /// Others are still missing.
        case none
        /// The bus has what was asked for, and the rules of the mode before are to be withdrawn.
        case changed
        /// The bus has refused, and what was asked for is to be withdrawn.
        case refused
    }

    /// The number of rules from which spares are worthwhile.
    private let sparesThreshold: Int

    package private(set) var mode = Mode.narrow
    /// The number of rules with one rule per name.
    private var ruleCount = 0
    /// How many replies the change of mode is still waiting for, and whether one was a refusal.
    private var unanswered = 0
    private var wasRefused = false
    /// The number of rules that was too many.
    private var limit = 0
    private var hasAskedForSpares = false
    /// Whether the bus has, or may have, the spare rules.
    package private(set) var hasSpares = false

    package init(sparesThreshold: Int = 64) { self.sparesThreshold = sparesThreshold }

    package var hearsEverything: Bool { mode == .wide || mode == .narrowing }
    package var sendsRules: Bool { mode == .narrow || mode == .narrowing }
    /// With some distance from the limit, so that one name more or less does not change everything each time.
    package var shouldNarrow: Bool { mode == .wide && ruleCount <= limit / 2 }

    package mutating func add(rules count: Int) { ruleCount += count }
    package mutating func remove(rules count: Int) { ruleCount -= count }

    /// - Returns: whether to ask for the spare rules now.
    package mutating func asksForSpares() -> Bool {
        guard mode == .narrow, !hasAskedForSpares, ruleCount >= sparesThreshold else { return false }
        (hasAskedForSpares, hasSpares) = (true, true)
        return true
    }

    /// There are too many rules, so wide ones are sent.
    ///
    /// - Returns: whether the spare rules are to be withdrawn first.
    package mutating func beginWidening(rules count: Int) -> Bool {
        mode = .widening
        limit = ruleCount
        (wasRefused, unanswered) = (false, count)
        defer { hasSpares = false }
        return hasSpares
    }

    package mutating func beginNarrowing() {
        mode = .narrowing
        (wasRefused, unanswered) = (false, 0)
    }

    /// One rule per name is sent again, for another topic.
    package mutating func narrows(by count: Int) { if mode == .narrowing { unanswered += count } }

    /// The reply to a wide rule while widening, and to any other while narrowing.
    package mutating func changeAnswered(isAccepted: Bool) -> Outcome {
        if !isAccepted { wasRefused = true }
        unanswered -= 1
        return finish()
    }

    /// - Returns: what the replies so far mean; nothing may have been asked.
    package mutating func finish() -> Outcome {
        guard unanswered == 0 else { return .none }
        switch mode {
        case .widening: mode = wasRefused ? .narrow : .wide
        case .narrowing where wasRefused: (mode, limit) = (.wide, ruleCount)
        case .narrowing: (mode, hasAskedForSpares) = (.narrow, false)
        case .narrow, .wide: return .none
        }
        return wasRefused ? .refused : .changed
    }
}
