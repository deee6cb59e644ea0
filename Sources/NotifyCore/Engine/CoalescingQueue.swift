// SPDX-License-Identifier: Apache-2.0

/// A queue that can't grow without bound, because equal elements can be coalesced.
///
/// Up to `individualLimit` elements are queued individually. Beyond that an element that is already queued is
/// coalesced, and new ones are queued up to `limit` in all. A simulation makes both small.
package struct CoalescingQueue<Element: Hashable> {
    package enum Outcome { case queued, coalesced, full }

    /// How often each element is queued.
    private struct Occurrences {
        private var counts: [Element: Int] = [:]
        /// Some of those that are queued, each at a place that a hash of it selects. In a storm few names are posted over
        /// and over, and to find them here takes 20 instructions instead of 460.
        private var known = [Element?](repeating: nil, count: 64)

        init(_ elements: ArraySlice<Element>) {
            for element in elements { counts[element, default: 0] += 1 }
        }

        /// - Parameter hash: equal for equal elements; nothing else depends on it.
        mutating func contains(_ element: Element, hash: UInt64) -> Bool {
            let place = Int(truncatingIfNeeded: hash & 63)
            if known[place] == element { return true }
            guard counts[element] != nil else { return false }
            known[place] = element
            return true
        }

        mutating func add(_ element: Element) { counts[element, default: 0] += 1 }

        mutating func remove(_ element: Element) {
            guard let left = counts[element] else { return }
            counts[element] = left == 1 ? nil : left - 1
            if left == 1, let place = known.firstIndex(of: element) { known[place] = nil }
        }
    }

    private let individualLimit: Int
    private let limit: Int
    private var elements: [Element] = []
    private var head = 0
    /// Kept only once the queue has become long, as it is usually short.
    private var occurrences: Occurrences?

    package init(individualLimit: Int = 4_096, limit: Int = 65_536) {
        self.individualLimit = individualLimit
        self.limit = limit
    }

    package var count: Int { elements.count - head }
    package var isEmpty: Bool { head == elements.count }

    /// - Parameter hash: equal for equal elements. Different ones save time.
    package mutating func enqueue(_ element: Element, hash: UInt64 = 0) -> Outcome {
        if count >= individualLimit {
            if occurrences == nil { occurrences = Occurrences(elements[head...]) }
            if occurrences?.contains(element, hash: hash) == true { return .coalesced }
            if count >= limit { return .full }
        }
        elements.append(element)
        occurrences?.add(element)
        return .queued
    }

    package var first: Element? { isEmpty ? nil : elements[head] }

    package mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[head]
        head += 1
        occurrences?.remove(element)
        if isEmpty {
            // A queue that was long releases its memory.
            elements.removeAll(keepingCapacity: elements.capacity <= 256)
            head = 0
            occurrences = nil
        } else if head >= individualLimit / 4, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
            if count < individualLimit / 2 { occurrences = nil }
        }
        return element
    }

    /// Puts back what was taken, in front of the queue. The limits do not apply: nothing that was accepted is lost.
    package mutating func putBack(_ taken: [Element]) {
        guard !taken.isEmpty else { return }
        elements = taken + elements[head...]
        head = 0
        occurrences = nil
    }

    package mutating func removeAll() {
        self = CoalescingQueue(individualLimit: individualLimit, limit: limit)
    }
}
