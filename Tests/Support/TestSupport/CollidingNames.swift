// SPDX-License-Identifier: Apache-2.0

/// 65,536 names with the same 64-bit FNV-1a hash, by what is weak in it. See RFC 9923 for the function.
///
/// The prime is 2^40 + 435, so the lower 40 bits of the state depend on nothing but the lower 40 bits before. In each of
/// the pairs both blocks lead to the same lower 40 bits; a birthday search among some 2^20 blocks has found them. From
/// then on the upper 24 bits of the two states differ by a number that each further byte multiplies by 435, whatever
/// the byte is. So in a chain of such pairs each choice adds a number of its own, modulo 2^24, to the upper bits at the
/// end. 42 choices make 2^42 texts, of which 2^18 have any given end: a meeting in the middle finds them.
public let collidingNames: [String] = {
    let found: [(String, String)] = [
        ("j5Z1w.", "eZIB3J"), ("IOr53H", "6xh.O3"), ("rsSdgD", "bCAAv8"), ("9eLaEm", "JQYqrV"), ("mzqyG-", "K92mr."),
        ("RFe5y6", "YTxjvt"), ("IAPkJn", "KDJ5yT"), ("EEXZde", "lRV1cm"), ("FvOx-a", "3J94BY"), ("eO2v3c", "QmM45D"),
        ("pIkzsi", "dZiuC7"), ("CExTns", "d-ibdQ"), ("s3ztUZ", "lLjc2j"),
    ]
    // The last two collide again after each other.
    let pairs = found + (found.count..<42).map { found[$0.isMultiple(of: 2) ? 12 : 11] }

    func hash(_ block: String, after state: UInt64) -> UInt64 {
        block.utf8.reduce(state) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
    let upper: UInt32 = 1 << 24 - 1
    var state: UInt64 = 0xcbf2_9ce4_8422_2325
    var differences: [UInt32] = []
    for (index, pair) in pairs.enumerated() {
        let (first, second) = (hash(pair.0, after: state), hash(pair.1, after: state))
        var difference = UInt32(truncatingIfNeeded: second >> 40 &- first >> 40)
        // What each of the bytes that follow makes of it.
        for _ in 0..<6 * (pairs.count - 1 - index) { difference &*= 435 }
        differences.append(difference)
        state = first
    }

    /// What each set of choices adds up to: bit 0 of its index is the first choice.
    func sums(_ differences: ArraySlice<UInt32>) -> [UInt32] {
        differences.reduce(into: [0]) { sums, difference in sums += sums.map { ($0 &+ difference) & upper } }
    }
    let half = pairs.count / 2
    // The choices of the first half, in lists by what they add up to.
    let firsts = sums(differences[..<half])
    var heads = [UInt32](repeating: .max, count: Int(upper) + 1)
    var nexts = [UInt32](repeating: .max, count: firsts.count)
    for (choices, sum) in firsts.enumerated() {
        nexts[choices] = heads[Int(sum)]
        heads[Int(sum)] = UInt32(choices)
    }
    var names: [String] = []
    for (choices, sum) in sums(differences[half...]).enumerated() {
        var other = heads[Int((0 &- sum) & upper)]
        while other != .max, names.count < 65_536 {
            let all = choices << half | Int(other)
            names.append(
                pairs.enumerated().reduce(into: "") { $0 += all >> $1.offset & 1 == 0 ? $1.element.0 : $1.element.1 }
            )
            other = nexts[Int(other)]
        }
        if names.count == 65_536 { break }
    }
    return names
}()
