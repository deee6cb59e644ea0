// SPDX-License-Identifier: Apache-2.0

/// A queue that can't grow without bound, because equal elements can be coalesced.
///
/// Up to `individualLimit` elements are queued individually. Beyond that an element that is already queued is
/// coalesced, and new ones are queued up to `limit` in all. A simulation makes both small.
package struct CoalescingQueue<Element: Hashable> {
    package enum Outcome { case queued, coalesced, full }

    private let individualLimit: Int
    private let limit: Int
    private var elements: [Element] = []
    private var head = 0
    /// How often each element is queued. Kept only once the queue has become long, as it is usually short.
    private var occurrences: [Element: Int]?

    package init(individualLimit: Int = 4_096, limit: Int = 65_536) {
        self.individualLimit = individualLimit
        self.limit = limit
    }

    package var count: Int { elements.count - head }
    package var isEmpty: Bool { head == elements.count }

    package mutating func enqueue(_ element: Element) -> Outcome {
        if count >= individualLimit {
            if occurrences == nil { countOccurrences() }
            if occurrences?[element] != nil { return .coalesced }
            if count >= limit { return .full }
        }
        elements.append(element)
        occurrences?[element, default: 0] += 1
        return .queued
    }

    package var first: Element? { isEmpty ? nil : elements[head] }

    package mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[head]
        head += 1
        if let left = occurrences?[element] {
            occurrences?[element] = left == 1 ? nil : left - 1
        }
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

    private mutating func countOccurrences() {
        var counts: [Element: Int] = [:]
        for element in elements[head...] { counts[element, default: 0] += 1 }
        occurrences = counts
    }
}
