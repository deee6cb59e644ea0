// SPDX-License-Identifier: Apache-2.0

/// A queue that can't grow without end: 4,096 elements one for one, beyond that one of each kind, 65,536 in all.
struct MergingQueue<Element: Hashable> {
    enum Outcome {
        case queued
        /// An equal element waits already, and stands for this one too.
        case merged
        case full
    }

    private let exact = 4_096
    private let most = 65_536
    private var elements: [Element] = []
    private var head = 0
    /// How often each element waits; kept only while more wait than `exact`, and until half of that do.
    private var waiting: [Element: Int] = [:]

    var count: Int { elements.count - head }

    mutating func enqueue(_ element: Element) -> Outcome {
        if count >= exact {
            if waiting.isEmpty {
                for element in elements[head...] { waiting[element, default: 0] += 1 }
            }
            if waiting[element] != nil { return .merged }
            if count >= most { return .full }
        }
        if !waiting.isEmpty { waiting[element, default: 0] += 1 }
        elements.append(element)
        return .queued
    }

    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head]
        head += 1
        if let times = waiting[element] {
            waiting[element] = times > 1 ? times - 1 : nil
        }
        if count < exact / 2, !waiting.isEmpty { waiting = [:] }
        if head == elements.count || head > exact {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }
}
