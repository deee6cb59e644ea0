// SPDX-License-Identifier: Apache-2.0

/// What stands for the posts of a name, and so can stand for several.
@usableFromInline
package protocol Coalescing {
    associatedtype Name: Hashable
    var name: Name { get }
    /// From now on this also stands for another one of the same name, which came later.
    mutating func merge(_ other: Self)
}

extension Coalescing {
    @inlinable package mutating func merge(_ other: Self) {}
}

extension NotifyName: Coalescing {
    @inlinable package var name: NotifyName { self }
}

/// A queue that can't grow without bound, because elements of the same name can be coalesced.
///
/// Up to `individualLimit` elements are queued individually. Beyond that an element whose name is already queued is
/// coalesced, and new names are queued up to `limit` in all. A simulation makes both small.
@usableFromInline
package struct CoalescingQueue<Element: Coalescing> {
    @usableFromInline
    package enum Outcome: Sendable { case queued, coalesced, full }

    @usableFromInline let individualLimit: Int
    @usableFromInline let limit: Int
    @usableFromInline var elements = Fifo<Element>()
    /// The position of the last element of each name. Kept only once the queue has become long, as it is usually short.
    @usableFromInline var places: [Element.Name: Int]?
    @usableFromInline var keepsEachOnce = false

    @inlinable
    package init(individualLimit: Int = 4_096, limit: Int = 65_536) {
        self.individualLimit = individualLimit
        self.limit = limit
    }

    @inlinable package var count: Int { elements.count }
    @inlinable package var isEmpty: Bool { elements.isEmpty }
    package var all: [Element] { elements.all }

    package mutating func contains(_ name: Element.Name) -> Bool {
        if places == nil { findPlaces() }
        return places?[name] != nil
    }

    /// - Parameter mayGrow: whether there is room for a name that is not queued yet.
    @inlinable
    package mutating func enqueue(_ element: Element, mayGrow: Bool = true) -> Outcome {
        if count >= individualLimit || keepsEachOnce || !mayGrow {
            if places == nil { findPlaces() }
            if let place = places?[element.name] {
                elements[place]?.merge(element)
                return .coalesced
            }
            if count >= limit || !mayGrow { return .full }
        }
        places?[element.name] = elements.end
        elements.append(element)
        return .queued
    }

    @inlinable
    package mutating func popFirst() -> Element? {
        let place = elements.start
        guard let element = elements.popFirst() else { return nil }
        if places != nil { forget(element, at: place) }
        return element
    }

    /// Takes the first elements out.
    package mutating func take(_ limit: Int) -> [Element] {
        var taken: [Element] = []
        while taken.count < limit, let element = popFirst() { taken.append(element) }
        return taken
    }

    /// Puts back what was taken, in front of the queue. The limits don't apply: nothing that was accepted is lost.
    package mutating func putBack(_ taken: [Element]) {
        guard !taken.isEmpty else { return }
        elements = Fifo(taken + elements.all)
        places = nil
        if keepsEachOnce { coalesce() }
    }

    /// Queues each name once, and coalesces what is already queued, until told otherwise.
    package mutating func keepEachOnce(_ keeps: Bool) {
        guard keepsEachOnce != keeps else { return }
        keepsEachOnce = keeps
        if keeps { coalesce() }
    }

    /// Drops what is no longer wanted.
    package mutating func keep(where isWanted: (Element) -> Bool) {
        elements = elements.filter(isWanted)
        places = nil
    }

    package mutating func removeAll() {
        elements = Fifo()
        places = nil
    }

    @usableFromInline
    mutating func forget(_ element: Element, at place: Int) {
        // A queue that was long releases its memory.
        if isEmpty || !keepsEachOnce && count < individualLimit / 2 {
            places = nil
        } else if places?[element.name] == place {
            places?[element.name] = nil
        }
    }

    @usableFromInline
    mutating func findPlaces() {
        var found: [Element.Name: Int] = [:]
        for (offset, element) in elements.all.enumerated() { found[element.name] = elements.start + offset }
        places = found
    }

    private mutating func coalesce() {
        var found: [Element.Name: Int] = [:]
        var kept: [Element] = []
        for element in elements.all {
            if let place = found[element.name] {
                kept[place].merge(element)
            } else {
                found[element.name] = kept.count
                kept.append(element)
            }
        }
        elements = Fifo(kept)
        places = found
    }
}

// By what is queued: the rest only saves time.
extension CoalescingQueue: Equatable where Element: Equatable {
    @usableFromInline
    package static func == (left: CoalescingQueue, right: CoalescingQueue) -> Bool {
        left.elements == right.elements && left.keepsEachOnce == right.keepsEachOnce
    }
}

extension CoalescingQueue: Hashable where Element: Hashable {
    @usableFromInline
    package func hash(into hasher: inout Hasher) {
        hasher.combine(elements)
        hasher.combine(keepsEachOnce)
    }
}

extension CoalescingQueue: Sendable where Element: Sendable, Element.Name: Sendable {}

/// First in, first out. Both take constant time on average, and elements that were taken are no longer kept in memory.
@usableFromInline
package struct Fifo<Element> {
    @usableFromInline var elements: [Element?]
    @usableFromInline var head = 0
    /// How many elements came before the first of the array.
    @usableFromInline var gone = 0

    @inlinable package init(_ elements: [Element] = []) { self.elements = elements }

    /// Copies them.
    package var all: [Element] { elements[head...].compactMap { $0 } }
    @inlinable package var count: Int { elements.count - head }
    @inlinable package var isEmpty: Bool { head == elements.count }
    @inlinable package var first: Element? { isEmpty ? nil : elements[head] }

    /// The position of the first element. An element keeps its position as long as it is queued.
    @inlinable package var start: Int { gone + head }
    /// The position of the next element to be appended.
    @inlinable package var end: Int { gone + elements.count }

    /// The element at a position; nil if it was taken.
    @inlinable package subscript(position: Int) -> Element? {
        get { elements[position - gone] }
        _modify { yield &elements[position - gone] }
    }

    @inlinable package mutating func append(_ element: Element) { elements.append(element) }

    @inlinable
    package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head].take()
        head += 1
        if isEmpty {
            gone += head
            elements.removeAll(keepingCapacity: elements.capacity <= 64)
            head = 0
        } else if head >= 64, head * 2 >= elements.count {
            gone += head
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Changes all elements, in order.
    package mutating func changeAll(_ change: (inout Element) -> Void) {
        for index in elements.indices.dropFirst(head) {
            guard var element = elements[index].take() else { continue }
            change(&element)
            elements[index] = element
        }
    }

    package func filter(_ isKept: (Element) -> Bool) -> Fifo { Fifo(all.filter(isKept)) }
}

extension Fifo: Sendable where Element: Sendable {}

extension Fifo: Equatable where Element: Equatable {
    @usableFromInline
    package static func == (left: Fifo, right: Fifo) -> Bool { left.all == right.all }
}

extension Fifo: Hashable where Element: Hashable {
    @usableFromInline
    package func hash(into hasher: inout Hasher) { hasher.combine(all) }
}
