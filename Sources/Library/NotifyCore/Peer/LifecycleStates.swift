// SPDX-License-Identifier: Apache-2.0

/// The state of a center's program as others see it, and the followers of its changes.
package final class LifecycleStates: Sendable {
    private struct Contents {
        var current = LifecycleState.foreground
        var followers = Followers<LifecycleState>()
        var followsDesktop = false
    }

    private let contents = Monitor(Contents())

    var current: LifecycleState { contents.withLock { $0.current } }
    var isFollowed: Bool { contents.withLock { !$0.followers.isEmpty } }

    /// Whether the program wants to follow the desktop.
    var followsDesktop: Bool {
        get { contents.withLock { $0.followsDesktop } }
        set { contents.withLock { $0.followsDesktop = newValue } }
    }

    func set(_ state: LifecycleState) {
        contents.withLock { contents in
            guard contents.current != state else { return }
            contents.current = state
            contents.followers.report(state)
        }
    }

    /// Reports changes from now on, and first the current state if asked to.
    ///
    /// - Returns: the number by which to end that.
    func add(_ follower: Follower<LifecycleState>, beginningWithPresent: Bool) -> Int {
        contents.withLock { contents in
            if beginningWithPresent { follower.change(contents.current) }
            return contents.followers.add(follower)
        }
    }

    package func remove(_ number: Int) {
        contents.withLock { $0.followers.remove(number) }
    }

    func end() {
        contents.withLock { $0.followers.takeAll() }.forEach { $0.end() }
    }
}
