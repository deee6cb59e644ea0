// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The waiters for match rules that the bus has yet to confirm.
///
/// Requests for rules are numbered. Another client may have asked for the same names just before, so a waiter waits for
/// every request up to the last one: it needs a single number, however many there are. Whether a request succeeds concerns
/// only the client that made it, and those that `fail` names.
package struct RuleQueue<Waiter, Failure: Error> {
    fileprivate struct Entry {
        let number: Int
        let client: String
        let waiter: Waiter
        var failure: Failure?
    }

    private var last = 0
    /// All requests up to this one are settled, and these beyond it.
    private var settledCount = 0
    private var settled: Set<Int> = []
    private var entries = Fifo<Entry>()

    package init() {}

    /// A request begins.
    package mutating func begin() -> Int {
        last += 1
        return last
    }

    /// Waits until the requests so far are settled.
    ///
    /// - Returns: false if they are.
    package mutating func wait(_ waiter: Waiter, of client: String) -> Bool {
        guard settledCount < last else { return false }
        entries.append(Entry(number: last, client: client, waiter: waiter, failure: nil))
        return true
    }

    /// All that wait now because of this client fail. This looks at all, and is seldom.
    package mutating func fail(_ client: String, _ failure: Failure) {
        entries.changeAll { if $0.client == client { $0.failure = failure } }
    }

    /// The bus has replied to a request.
    ///
    /// - Returns: the waiters that need not wait any longer, in order.
    package mutating func settle(_ number: Int) -> [(waiter: Waiter, failure: Failure?)] {
        guard number > settledCount, number <= last else { return [] }
        settled.insert(number)
        while settled.remove(settledCount + 1) != nil { settledCount += 1 }
        var due: [(Waiter, Failure?)] = []
        while let first = entries.first, first.number <= settledCount {
            due.append((first.waiter, first.failure))
            _ = entries.popFirst()
        }
        return due
    }
}

extension RuleQueue: Equatable where Waiter: Equatable, Failure: Equatable {}
extension RuleQueue: Hashable where Waiter: Hashable, Failure: Hashable {}
extension RuleQueue.Entry: Equatable where Waiter: Equatable, Failure: Equatable {}
extension RuleQueue.Entry: Hashable where Waiter: Hashable, Failure: Hashable {}
