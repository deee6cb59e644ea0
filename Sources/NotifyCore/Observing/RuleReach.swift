// SPDX-License-Identifier: Apache-2.0

/// Which match rules a connection has on the bus.
///
/// Usually one for each name. Above the limit of the bus (512 a connection on a default system bus) two that bring every
/// post; what nobody wants is then discarded here. Two spare rules that match nothing are given up for them, so that
/// no name goes unheard while the change is made.
struct RuleReach {
    enum Mode {
        /// One rule a name.
        case narrow
        /// The wide rules are on their way, the others still stand.
        case widening
        /// The wide rules stand alone.
        case wide
        /// The wide rules stand, one rule a name is on its way again.
        case narrowing
    }

    /// From how many rules on it is worth having spares.
    private static let sparesThreshold = 64

    var mode = Mode.narrow
    /// How many rules one a name makes.
    var ruleCount = 0
    /// How many answers the change of mode still waits for, and whether one was a refusal.
    var unanswered = 0
    var wasRefused = false
    /// How many rules were too many.
    var limit = 0
    var hasAskedForSpares = false
    var hasSpares = false

    var hearsEverything: Bool { mode == .wide || mode == .narrowing }
    var sendsRules: Bool { mode == .narrow || mode == .narrowing }
    var wantsSpares: Bool { mode == .narrow && !hasAskedForSpares && ruleCount >= RuleReach.sparesThreshold }
    /// With some distance to the limit, so that one name more or less does not change everything each time.
    var shouldNarrow: Bool { mode == .wide && ruleCount <= limit / 2 }
}
