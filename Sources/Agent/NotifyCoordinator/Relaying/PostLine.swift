// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The posts for the clients of one owner that are in none of their queues yet, and what must come after them.
///
/// A post is here once, however many of the clients hear it. So what a post costs when it comes does not grow with what one
/// owner observes; the rest is done when it is that owner's turn.
struct PostLine: Hashable, Sendable {
    enum Item {
        case post(RelayTable.Post)
        case follower(Int)
    }

    /// Posts, and their followers. Only posts without a follower between them are coalesced.
    private struct Part: Hashable, Sendable {
        var posts = CoalescingQueue<RelayTable.Post>()
        var followers = Fifo<Int>()
    }

    private var parts = Fifo<Part>()
    /// The size of the names that wait.
    private(set) var bytes = 0

    var isEmpty: Bool { parts.isEmpty }
    /// In the order of the posts.
    var names: [NotifyName] { parts.all.flatMap { $0.posts.all.map(\.name) } }

    /// - Parameter room: up to which size there is room for a name that does not wait yet.
    /// - Returns: false if there is no room for the post.
    mutating func append(_ post: RelayTable.Post, room: Int) -> Bool {
        let position = parts.end - 1
        if parts.isEmpty || parts[position]?.followers.isEmpty == false {
            parts.append(Part())
            return append(post, room: room)
        }
        switch parts[position]?.posts.enqueue(post, mayGrow: bytes + post.cost <= room) {
        case .queued: bytes += post.cost
        case .coalesced: break
        case .full, nil: return false
        }
        return true
    }

    /// - Returns: false if nothing waits that it must follow.
    mutating func append(follower: Int) -> Bool {
        guard !parts.isEmpty else { return false }
        parts[parts.end - 1]?.followers.append(follower)
        return true
    }

    mutating func popFirst() -> Item? {
        guard !parts.isEmpty else { return nil }
        let position = parts.start
        var item: Item?
        if let post = parts[position]?.posts.popFirst() {
            bytes -= post.cost
            item = .post(post)
        } else {
            item = parts[position]?.followers.popFirst().map { .follower($0) }
        }
        if parts[position].map({ $0.posts.isEmpty && $0.followers.isEmpty }) == true { _ = parts.popFirst() }
        return item
    }
}
