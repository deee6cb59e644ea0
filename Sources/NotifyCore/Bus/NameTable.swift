// SPDX-License-Identifier: Apache-2.0

/// Objects by the wire's hash of a name, which is at hand for each post. Finding one takes some 20 instructions, where a
/// `Dictionary` takes 200 because it hashes the hash.
///
/// Anybody can make names whose hashes are alike, so the place of a hash is chosen by a factor that nobody outside can
/// foresee (multiply-shift hashing; the next free place is taken where that one is not). Names whose hashes are the same
/// are for the owner to tell apart: there is one object for a hash.
struct NameTable<Element: AnyObject> {
    private struct Place {
        var hash: UInt64
        var element: Element
    }

    /// A power of two, of which at most three quarters are taken; none as long as the table is empty.
    private var places: [Place?] = []
    private(set) var count = 0
    private var factor: UInt64 = 0
    /// By how much the product is shifted to have as many bits as the number of a place.
    private var shift: UInt64 = 0

    init() {}

    @inline(__always)
    private func firstPlace(of hash: UInt64) -> Int { Int(truncatingIfNeeded: (hash &* factor) >> shift) }

    @inline(__always)
    private func next(_ index: Int) -> Int { (index + 1) & (places.count - 1) }

    subscript(hash: UInt64) -> Element? {
        @inline(__always)
        get {
            guard count > 0 else { return nil }
            var index = firstPlace(of: hash)
            while let place = places[index] {
                if place.hash == hash { return place.element }
                index = next(index)
            }
            return nil
        }
    }

    /// Enters an object, in place of another one with the same hash.
    mutating func set(_ element: Element, for hash: UInt64) {
        if (count + 1) * 4 > places.count * 3 { resize(to: max(8, places.count * 2)) }
        enter(Place(hash: hash, element: element))
    }

    private mutating func enter(_ new: Place) {
        var index = firstPlace(of: new.hash)
        while let place = places[index], place.hash != new.hash { index = next(index) }
        if places[index] == nil { count += 1 }
        places[index] = new
    }

    mutating func remove(_ hash: UInt64) {
        guard count > 0 else { return }
        var gap = firstPlace(of: hash)
        while let place = places[gap], place.hash != hash { gap = next(gap) }
        guard places[gap] != nil else { return }
        places[gap] = nil
        count -= 1
        // Those behind it that could not have their own place move up, or the gap would hide them.
        var index = next(gap)
        while let place = places[index] {
            let distance = (index - firstPlace(of: place.hash)) & (places.count - 1)
            if distance >= (index - gap) & (places.count - 1) {
                places[gap] = place
                places[index] = nil
                gap = index
            }
            index = next(index)
        }
        if places.count > 8, count * 8 < places.count { resize(to: places.count / 4) }
    }

    mutating func removeAll() {
        self = NameTable()
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
