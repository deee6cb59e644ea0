// SPDX-License-Identifier: Apache-2.0

/// The state of a center's program as others see it, and those who follow its changes.
package final class LifecycleStates: Sendable {
    /// A follower of changes. Called with the lock held, so it must only pass them on.
    package struct Follower: Sendable {
        let change: @Sendable (NotifyCenter.LifecycleState) -> Void
        let end: @Sendable () -> Void

        package init(
            change: @escaping @Sendable (NotifyCenter.LifecycleState) -> Void,
            end: @escaping @Sendable () -> Void
        ) {
            self.change = change
            self.end = end
        }
    }

    private struct Contents {
        var current = NotifyCenter.LifecycleState.foreground
        var followers: [Int: Follower] = [:]
        var lastFollower = 0
        var followsDesktop = false
    }

    private let contents = Monitor(Contents())

    var current: NotifyCenter.LifecycleState { contents.withLock { $0.current } }
    var isFollowed: Bool { contents.withLock { !$0.followers.isEmpty } }

    /// Whether the program wants to follow the desktop.
    var followsDesktop: Bool {
        get { contents.withLock { $0.followsDesktop } }
        set { contents.withLock { $0.followsDesktop = newValue } }
    }

    func set(_ state: NotifyCenter.LifecycleState) {
        contents.withLock { contents in
            guard contents.current != state else { return }
            contents.current = state
            for follower in contents.followers.values { follower.change(state) }
        }
    }

    /// Reports changes from now on, and first the current state if asked to.
    ///
    /// - Returns: the number by which to end that.
    func add(_ follower: Follower, beginningWithPresent: Bool) -> Int {
        contents.withLock { contents in
            if beginningWithPresent { follower.change(contents.current) }
            contents.lastFollower += 1
            contents.followers[contents.lastFollower] = follower
            return contents.lastFollower
        }
    }

    package func remove(_ number: Int) {
        contents.withLock { _ = $0.followers.removeValue(forKey: number) }
    }

    func end() {
        let followers = contents.withLock { Array($0.followers.values) }
        for follower in followers { follower.end() }
    }
}
