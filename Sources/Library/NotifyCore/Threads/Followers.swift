// SPDX-License-Identifier: Apache-2.0

/// Someone who follows changes. Called with a lock held, so it must only pass them on.
package struct Follower<Value: Sendable>: Sendable {
    let change: @Sendable (Value) -> Void
    let end: @Sendable () -> Void

    package init(change: @escaping @Sendable (Value) -> Void, end: @escaping @Sendable () -> Void) {
        self.change = change
        self.end = end
    }
}

/// Several of them. They are few, so this is an array: metadata of a dictionary would be made with each first center.
struct Followers<Value: Sendable>: Sendable {
    private var all: [(number: Int, follower: Follower<Value>)] = []
    private var lastNumber = 0
    private var hasEnded = false

    var isEmpty: Bool { all.isEmpty }

    func report(_ change: Value) {
        for (_, follower) in all { follower.change(change) }
    }

    /// - Returns: the number by which to remove it.
    mutating func add(_ follower: Follower<Value>) -> Int {
        lastNumber += 1
        if hasEnded { follower.end() } else { all.append((lastNumber, follower)) }
        return lastNumber
    }

    mutating func remove(_ number: Int) {
        all.removeAll { $0.number == number }
    }

    /// None is told anything after this. Those that are returned must be told that it has ended, without the lock.
    mutating func takeAll() -> [Follower<Value>] {
        hasEnded = true
        defer { all = [] }
        return all.map(\.follower)
    }
}
