// SPDX-License-Identifier: Apache-2.0

extension Command {
    /// The one among `words` that was most likely meant by `name`; nil if none is close.
    func nearest(to name: UnsafeRawBufferPointer, among words: [String]) -> String? {
        // Longer than any option by more than a typo.
        guard name.count < 40 else { return nil }
        let beginnings = words.filter { $0.utf8.starts(with: name) }
        if beginnings.count == 1 { return beginnings[0] }
        var best: (word: String, distance: Int)?
        for word in words {
            let distance = editDistance(Array(name), Array(word.utf8))
            if distance < best?.distance ?? Int.max {
                best = (word, distance)
            }
        }
        guard let best, best.distance <= max(1, best.word.utf8.count / 3) else { return nil }
        return best.word
    }
}

/// How many bytes must be inserted, deleted, replaced or swapped with their neighbour to turn `a` into `b`.
private func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var rows = [Array(0...b.count)]
    for i in 0..<a.count {
        var row = [i + 1]
        for j in 0..<b.count {
            var cost = min(rows[i][j] + (a[i] == b[j] ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                cost = min(cost, rows[i - 1][j - 1] + 1)
            }
            row.append(cost)
        }
        rows.append(row)
    }
    return rows[a.count][b.count]
}
