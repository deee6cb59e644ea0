// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import NotifyCore

@Suite struct ObjectTableTests {
    final class Entry {
        let number: Int
        init(_ number: Int) { self.number = number }
    }

    @Test("a table by number has what was last added and not removed, however similar the numbers are")
    func holdsLikeDictionary() {
        var random = SystemRandomNumberGenerator()
        for mask in [UInt64.max, 0xff << 56, 0x3f, 0xfff << 30] {
            var table = ObjectTable<Entry>()
            var expected: [UInt64: Int] = [:]
            for step in 0..<20_000 {
                // First more objects are added than removed, then the reverse.
                let hash = random.next() & mask & 0x3ff0_0000_0fff
                if Int.random(in: 0..<20_000, using: &random) > step {
                    table.set(Entry(step), for: hash)
                    expected[hash] = step
                } else {
                    let key = expected.isEmpty || step.isMultiple(of: 3) ? hash : expected.first!.key
                    #expect(table.remove(key)?.number == expected.removeValue(forKey: key))
                }
                #expect(table.count == expected.count)
                #expect(table[hash]?.number == expected[hash])
            }
            for (hash, number) in expected { #expect(table[hash]?.number == number) }
            var all: [Int] = []
            table.forEach { all.append($0.number) }
            #expect(all.sorted() == expected.values.sorted())
        }
    }
}
