// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// What a connection is owed that replaces one that was parked or cut off, until it hears by itself again.
///
/// While nothing listens, the agent hears its names and keeps the posts as pending names. The reply to its registration
/// reports those. See "Coming back" in Documentation/internals.md.
struct ComingBack: Hashable {
    enum Stage: Hashable {
        /// It hears by itself, or is as suspended as any.
        case no
        /// It has registered, and is to hear again once its names are subscribed.
        case registering
        /// These are about to be reported. The agent hears them again first: the report covers any post that comes earlier.
        case reporting([NotifyName])
        /// The reply has reported these. It may be lost before it has been read.
        case reported([NotifyName])
    }

    var stage = Stage.no
    /// What it added when the bus had forgotten it and the agent had not subscribed yet, or what the bus has refused
    /// the agent then: posts of that may be lost.
    var gaps = Subjects()
    /// Whether the bus has refused the agent what it is to hear until this connection hears again.
    private(set) var isUnheard = false

    /// Whether the agent hears for it until it is told that it is registered.
    var isUnderWay: Bool {
        switch stage {
        case .registering, .reporting: true
        case .no, .reported: false
        }
    }

    /// What is neither pending nor known to have been read.
    var names: [NotifyName] {
        switch stage {
        case .no, .registering: []
        case .reporting(let names), .reported(let names): names
        }
    }

    /// Whether the report misses nothing that the connection could ask for by its name.
    var isComplete: Bool { gaps.prefixes.isEmpty && !isUnheard }

    /// The agent hears only these of what the connection observes.
    mutating func lacks(_ subjects: Subjects, isParked: Bool) {
        if isParked { gaps.formUnion(subjects) }
        if isUnderWay { isUnheard = true }
    }

    /// The reply is on its way.
    mutating func report() { self = ComingBack(stage: names.isEmpty ? .no : .reported(names)) }

    /// It has read what was sent to it.
    mutating func hasRead() { if case .reported = stage { stage = .no } }
}
