// SPDX-License-Identifier: Apache-2.0

/// The match rules that a connection has on the bus.
///
/// Usually one for each name. Beyond the limit of the bus (512 per connection on a default system bus), two that match
/// every post; unwanted posts are then discarded here. Two spare rules that match nothing are given up for them, so
/// that no name goes unheard during the change.
struct RuleReach {
    enum Mode {
        /// One rule per name.
        case narrow
        /// The wide rules have been sent; the others are still in place.
        case widening
        /// Only the wide rules are in place.
        case wide
        /// The wide rules are in place; one rule per name has been sent again.
        case narrowing
    }

    /// The number of rules from which spares are worthwhile.
    private static let sparesThreshold = 64

    var mode = Mode.narrow
    /// The number of rules with one rule per name.
    var ruleCount = 0
    /// How many replies the change of mode is still waiting for, and whether one was a refusal.
    var unanswered = 0
    var wasRefused = false
    /// The number of rules that was too many.
    var limit = 0
    var hasAskedForSpares = false
    var hasSpares = false

    var hearsEverything: Bool { mode == .wide || mode == .narrowing }
    var sendsRules: Bool { mode == .narrow || mode == .narrowing }
    var wantsSpares: Bool { mode == .narrow && !hasAskedForSpares && ruleCount >= RuleReach.sparesThreshold }
    /// With some distance from the limit, so that one name more or less does not change everything each time.
    var shouldNarrow: Bool { mode == .wide && ruleCount <= limit / 2 }
}
