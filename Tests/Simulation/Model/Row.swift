// SPDX-License-Identifier: Apache-2.0

/// The situations in which a promise does not hold in full. They are the rows of the table "What can still happen" in
/// Documentation/lifecycle.md, in its words. Nothing else is tolerated, and whatever is tolerated is counted.
package enum Row: Int, CaseIterable, Sendable {
    /// A post is delivered or dropped.
    case goingToBackground
    /// A post is dropped or delivered.
    case comingFromBackground
    /// A post is heard twice.
    case beingSuspended
    /// A post is heard twice.
    case beingResumed
    /// Instead of a post, only its name is heard, which may stand for several posts.
    case stopped
    /// A name is heard without a post; for a prefix each name is, and posts are lost.
    case addedWhileParked
    /// A name is heard without a post; for a prefix a post is lost.
    case torn
    /// Each name is heard once, for each such agent, or a post twice; for a prefix posts are lost.
    case agentDied
    /// Each name is heard once, or a post twice.
    case resumeDisturbed
    /// A post is dropped or replayed, until it is decided again.
    case lostWhileChanging
    /// A post is lost; each name is heard once, for each such loss.
    case connectionLost
    /// A post is dropped or delivered, and may be heard twice, until the program is registered.
    case notRegistered
    /// A name is lost.
    case noRoom

    /// The first column of the table.
    package var title: String {
        switch self {
        case .goingToBackground: "going into the background"
        case .comingFromBackground: "coming back from the background"
        case .beingSuspended: "being suspended"
        case .beingResumed: "being resumed"
        case .stopped: "stopped, not yet noticed"
        case .addedWhileParked: "adding a name while it is parked"
        case .torn: "stopped in the middle of reading a post"
        case .agentDied: "suspended, parked or being resumed, and the agent dies"
        case .resumeDisturbed: "stopped, or its connection lost, while it is being resumed"
        case .lostWhileChanging: "the connection is lost while the state changes"
        case .connectionLost: "the connection is lost"
        case .notRegistered: "changed before the program has registered with a new agent"
        case .noRoom: "more names wait than the limit allows"
        }
    }
}
