// SPDX-License-Identifier: Apache-2.0

/// The state of a center's connection, and the followers of its changes.
///
/// A center that observes has two connections, to the same bus. Then the observing one counts: it has to be there for
/// posts to be heard. The posting one counts as long as it is the only one.
package final class ConnectionChanges: Sendable {
    private struct Contents {
        /// The state of the observing connection; nil while there is none, and none is wanted.
        var observing: NotifyCenter.ConnectionChange?
        /// What was last reported.
        var reported: NotifyCenter.ConnectionChange?
        var followers = Followers<NotifyCenter.ConnectionChange>()

        mutating func report(_ change: NotifyCenter.ConnectionChange) {
            if reported?.kind == change.kind { return }
            reported = change
            followers.report(change)
        }
    }

    private let contents = Monitor(Contents())

    /// The state of the observing connection; nil if there is none.
    var current: NotifyCenter.ConnectionChange? { contents.withLock { $0.observing } }

    /// Notes the state of the observing connection, before any follower is told.
    func note(_ change: NotifyCenter.ConnectionChange?) { contents.withLock { $0.observing = change } }

    /// Reports a change of the observing connection.
    func report(_ change: NotifyCenter.ConnectionChange) { contents.withLock { $0.report(change) } }

    /// Reports a change of the posting connection, if it is the only one.
    func report(posting change: NotifyCenter.ConnectionChange) {
        contents.withLock { if $0.observing == nil { $0.report(change) } }
    }

    /// - Parameter present: the state of the posting connection, if anything is known of it.
    func add(
        _ follower: Follower<NotifyCenter.ConnectionChange>,
        present: NotifyCenter.ConnectionChange?
    ) -> Int {
        contents.withLock { contents in
            if contents.reported == nil, contents.observing == nil { contents.reported = present }
            if let reported = contents.reported { follower.change(reported) }
            return contents.followers.add(follower)
        }
    }

    package func remove(_ number: Int) { contents.withLock { $0.followers.remove(number) } }

    func end() {
        let followers = contents.withLock { contents in
            contents.observing = nil
            return contents.followers.takeAll()
        }
        followers.forEach { $0.end() }
    }
}
