// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
package import NotifyNames

/// Posts that wait for one sandboxed program. They are queued individually at first; beyond a limit, or on request, each
/// name is kept once.
package struct RelayQueue: Sendable {
    package struct Post: Equatable, Sendable {
        package let name: NotifyName
        /// The unique name of the poster's connection; empty if this stands for the posts of several.
        package var sender: String

        package init(_ name: NotifyName, from sender: String) {
            self.name = name
            self.sender = sender
        }
    }

    package enum Outcome { case queued, coalesced, full }

    /// How many posts are queued individually, and how many may wait in all.
    package static let individualLimit = 4_096
    package static let limit = 65_536

    private var posts = Fifo<Post>()
    /// How often each name waits; kept only while names are coalesced.
    private var occurrences: [NotifyName: Int]?
    /// Names whose posts by different programs have been coalesced.
    private var mixed: Set<NotifyName> = []
    /// Whether each name waits once at most.
    private var keepsEachOnce = false

    package init() {}

    package var count: Int { posts.count }
    package var isEmpty: Bool { posts.isEmpty }

    /// - Parameter mayGrow: whether there is room for a name that does not wait yet.
    package mutating func append(_ post: Post, mayGrow: Bool = true) -> Outcome {
        if keepsEachOnce || !mayGrow || count >= RelayQueue.individualLimit {
            if occurrences == nil { countOccurrences() }
            if occurrences?[post.name] != nil {
                mixed.insert(post.name)
                return .coalesced
            }
            if !mayGrow || count >= RelayQueue.limit { return .full }
        }
        posts.append(post)
        occurrences?[post.name, default: 0] += 1
        return .queued
    }

    /// Takes the first posts out.
    package mutating func take(_ limit: Int) -> [Post] {
        var taken: [Post] = []
        while taken.count < limit, var post = posts.popFirst() {
            if mixed.contains(post.name) { post.sender = "" }
            if let left = occurrences?[post.name] {
                occurrences?[post.name] = left == 1 ? nil : left - 1
                if left == 1 { mixed.remove(post.name) }
            }
            taken.append(post)
        }
        // None waits twice any more.
        if isEmpty { mixed = [] }
        if !keepsEachOnce, count < RelayQueue.individualLimit / 2, mixed.isEmpty { occurrences = nil }
        return taken
    }

    /// Puts back what was taken, in front of what is waiting. The limits don't apply: nothing that was accepted is lost.
    package mutating func putBack(_ taken: [Post]) {
        posts = Fifo(taken + posts.all)
        occurrences = nil
        if keepsEachOnce { coalesce() }
    }

    /// From now on each name waits once, until told otherwise.
    package mutating func keepEachOnce(_ keeps: Bool) {
        guard keepsEachOnce != keeps else { return }
        keepsEachOnce = keeps
        if keeps { coalesce() } else if count < RelayQueue.individualLimit { occurrences = nil }
    }

    /// Drops what is no longer wanted.
    package mutating func keep(where isWanted: (NotifyName) -> Bool) {
        posts = posts.filter { isWanted($0.name) }
        occurrences = nil
    }

    package mutating func removeAll() {
        let keeps = keepsEachOnce
        self = RelayQueue()
        keepsEachOnce = keeps
    }

    private mutating func coalesce() {
        var seen: [NotifyName: Int] = [:]
        var rest: [Post] = []
        for post in posts.all {
            if let place = seen[post.name] {
                if rest[place].sender != post.sender { rest[place].sender = "" }
            } else {
                seen[post.name] = rest.count
                rest.append(post)
            }
        }
        posts = Fifo(rest)
        occurrences = seen.mapValues { _ in 1 }
    }

    private mutating func countOccurrences() {
        var counts: [NotifyName: Int] = [:]
        for post in posts.all { counts[post.name, default: 0] += 1 }
        occurrences = counts
    }
}
