// SPDX-License-Identifier: Apache-2.0

/// The state of a center's program as others see it, and who follows its changes.
final class LifecycleStates: Sendable {
    private struct Contents {
        var current = NotifyCenter.LifecycleState.foreground
        var followers: [Int: AsyncStream<NotifyCenter.LifecycleState>.Continuation] = [:]
        var lastFollower = 0
        var followsFocus = false
    }

    private let contents = Monitor(Contents())

    var current: NotifyCenter.LifecycleState { contents.withLock { $0.current } }
    var isFollowed: Bool { contents.withLock { !$0.followers.isEmpty } }

    /// Whether the program wants to be in the foreground only while it has the focus.
    var followsFocus: Bool {
        get { contents.withLock { $0.followsFocus } }
        set { contents.withLock { $0.followsFocus = newValue } }
    }

    func set(_ state: NotifyCenter.LifecycleState) {
        contents.withLock { contents in
            guard contents.current != state else { return }
            contents.current = state
            for follower in contents.followers.values { follower.yield(state) }
        }
    }

    /// The changes from now on. Only the newest waits for a follower that does not keep up.
    func follow() -> AsyncStream<NotifyCenter.LifecycleState> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: NotifyCenter.LifecycleState.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let number = contents.withLock { contents in
            contents.lastFollower += 1
            contents.followers[contents.lastFollower] = continuation
            return contents.lastFollower
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.contents.withLock { $0.followers.removeValue(forKey: number) }
        }
        return stream
    }

    func end() {
        let followers = contents.withLock { Array($0.followers.values) }
        for follower in followers { follower.finish() }
    }
}
