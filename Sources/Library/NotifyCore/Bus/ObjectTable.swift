// SPDX-License-Identifier: Apache-2.0

/// Objects by a number: the wire format's hash of a name, which is at hand for each post, a serial, an address. A
/// lookup takes some 20 instructions, where a `Dictionary` takes 200; and on a dictionary's first use Swift's runtime
/// searches all conformances of the program for how its keys are hashed, which takes 90,000.
///
/// Anybody can construct names with colliding hashes, so a number's slot depends on a factor that outsiders can't
/// predict (multiply-shift hashing with linear probing). The owner must distinguish names with equal hashes: there is
/// one object per number.
struct ObjectTable<Element: AnyObject> {
    private struct Place {
        var number: UInt64
        var element: Element
    }

    /// A power of two, of which at most three quarters are used; zero while the table is empty.
    private var places: [Place?] = []
    private(set) var count = 0
    private var factor: UInt64 = 0
    /// The shift that leaves as many bits of the product as a slot number has.
    private var shift: UInt64 = 0

    init() {}

    @inline(__always)
    private func firstPlace(of number: UInt64) -> Int { Int(truncatingIfNeeded: (number &* factor) >> shift) }

    @inline(__always)
    private func next(_ index: Int) -> Int { (index + 1) & (places.count - 1) }

    subscript(number: UInt64) -> Element? {
        @inline(__always)
        get {
            guard count > 0 else { return nil }
            var index = firstPlace(of: number)
            while let place = places[index] {
                if place.number == number { return place.element }
                index = next(index)
            }
            return nil
        }
    }

    /// Inserts an object, replacing any with the same number.
    mutating func set(_ element: Element, for number: UInt64) {
        if (count + 1) * 4 > places.count * 3 { resize(to: max(8, places.count * 2)) }
        enter(Place(number: number, element: element))
    }

    private mutating func enter(_ new: Place) {
        var index = firstPlace(of: new.number)
        while let place = places[index], place.number != new.number { index = next(index) }
        if places[index] == nil { count += 1 }
        places[index] = new
    }

    /// - Returns: the object that was there.
    @discardableResult
    mutating func remove(_ number: UInt64) -> Element? {
        guard count > 0 else { return nil }
        var gap = firstPlace(of: number)
        while let place = places[gap], place.number != number { gap = next(gap) }
        guard let removed = places[gap]?.element else { return nil }
        places[gap] = nil
        count -= 1
        // Move up the following entries that are not in their own slot, or the gap would hide them.
        var index = next(gap)
        while let place = places[index] {
            let distance = (index - firstPlace(of: place.number)) & (places.count - 1)
            if distance >= (index - gap) & (places.count - 1) {
                places[gap] = place
                places[index] = nil
                gap = index
            }
            index = next(index)
        }
        if places.count > 8, count * 8 < places.count { resize(to: places.count / 4) }
        return removed
    }

    mutating func removeAll() {
        self = ObjectTable()
    }

    func forEach(_ body: (Element) -> Void) {
        for case let place? in places { body(place.element) }
    }

    private mutating func resize(to capacity: Int) {
        let before = places
        places = Array(repeating: nil, count: capacity)
        count = 0
        if factor == 0 { factor = UInt64.random(in: 0...UInt64.max) | 1 }
        shift = UInt64(64 - capacity.trailingZeroBitCount)
        for case let place? in before { enter(place) }
    }
}
