// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The answers to `notify_check`, looked up by token number without a lock, so that a signal handler may ask.
///
/// A token's number modulo the size of the table is its slot; numbers whose slot is taken are skipped and never used.
/// So a lookup is a single read, numbers are never reused, and the memory is bounded by how many tokens exist at a
/// time: the table doubles when it is half full. Cells, counters and tables are kept for the lifetime of this object,
/// as a reader may be using one; cells and counters are reused, and all outgrown tables together are smaller than the
/// current one.
///
/// `@unchecked Sendable`: everything that is not atomic is touched only with the lock of the `TokenEngine` held.
final class CheckTable: @unchecked Sendable {
    typealias Counter = UnsafeMutablePointer<Atomic<UInt32>>

    /// The token in the upper half and the count it has seen in the lower one: changed together, so that a check can't
    /// affect the next token that uses the cell. The upper half of a free cell is 0, which is never a token.
    private struct Cell: ~Copyable {
        let tokenAndSeen = Atomic<UInt64>(0)
        /// A `Counter`; constant while the token exists.
        let counter = Atomic<UInt>(0)
        /// Whether the count itself may be read; constant while the token exists.
        let isPeekable = Atomic<Bool>(false)
    }

    private typealias CellPointer = UnsafeMutablePointer<Cell>
    /// The addresses of cells, 0 where there is none; preceded by the size of the table minus one.
    private typealias Table = UnsafeMutablePointer<Atomic<UInt>>

    private static let firstSize: UInt = 64

    private let table: Atomic<UInt>
    private let emptyTable: Table
    /// All memory that readers may be using. None of it needs to be deinitialized.
    private var memory: [UnsafeMutableRawPointer]
    private var count: UInt = 0
    private var lastToken: UInt32 = 0
    private var freeCells: [CellPointer] = []
    private var freeCounters: [Counter] = []

    init() {
        emptyTable = CheckTable.makeTable(size: 1)
        let first = CheckTable.makeTable(size: CheckTable.firstSize)
        table = Atomic(UInt(bitPattern: first))
        memory = [UnsafeMutableRawPointer(emptyTable), UnsafeMutableRawPointer(first)]
    }

    deinit {
        for block in memory { block.deallocate() }
    }

    private static func makeTable(size: UInt) -> Table {
        let table = Table.allocate(capacity: Int(size) + 1)
        for index in 0...Int(size) { (table + index).initialize(to: Atomic(0)) }
        table.pointee.store(size - 1, ordering: .relaxed)
        return table
    }

    private var currentTable: Table {
        // Never nil: `init` sets it, and it is only ever set to tables.
        Table(bitPattern: table.load(ordering: .acquiring)).unsafelyUnwrapped
    }

    // MARK: - For any thread, at any time

    @inline(__always)
    private func cell(of token: Int32) -> CellPointer? {
        guard token > 0 else { return nil }
        let table = currentTable
        let place = UInt(UInt32(bitPattern: token)) & table.pointee.load(ordering: .relaxed)
        return CellPointer(bitPattern: table[Int(place) + 1].load(ordering: .acquiring))
    }

    @inline(__always)
    private static func counter(in cell: CellPointer) -> Counter? {
        Counter(bitPattern: cell.pointee.counter.load(ordering: .relaxed))
    }

    /// Whether the name of a token was posted since the last check; nil if there is no such token.
    @inline(__always)
    func check(_ token: Int32) -> Bool? {
        guard let cell = cell(of: token) else { return nil }
        var word = cell.pointee.tokenAndSeen.load(ordering: .acquiring)
        while true {
            guard UInt32(word >> 32) == UInt32(bitPattern: token), let counter = CheckTable.counter(in: cell) else {
                return nil
            }
            let posts = counter.pointee.load(ordering: .acquiring)
            if UInt32(truncatingIfNeeded: word) == posts { return false }
            let (exchanged, original) = cell.pointee.tokenAndSeen.compareExchange(
                expected: word,
                desired: word & 0xffff_ffff_0000_0000 | UInt64(posts),
                ordering: .acquiringAndReleasing
            )
            if exchanged { return true }
            word = original
        }
    }

    /// Makes the next check of this token, and of no other, answer yes.
    func markPosted(_ token: Int32) {
        guard let cell = cell(of: token) else { return }
        var word = cell.pointee.tokenAndSeen.load(ordering: .acquiring)
        while true {
            guard UInt32(word >> 32) == UInt32(bitPattern: token), let counter = CheckTable.counter(in: cell) else {
                return
            }
            let posts = counter.pointee.load(ordering: .acquiring)
            // If it has not seen the last post, it already answers yes.
            guard UInt32(truncatingIfNeeded: word) == posts else { return }
            let (exchanged, original) = cell.pointee.tokenAndSeen.compareExchange(
                expected: word,
                desired: word & 0xffff_ffff_0000_0000 | UInt64(posts &- 1),
                ordering: .acquiringAndReleasing
            )
            if exchanged { return }
            word = original
        }
    }

    /// How often the name of a token was posted; `invalidToken` if there is no such token, `invalidRequest` if it is not
    /// of a kind that may ask.
    func posts(_ token: Int32) -> Result<UInt32, NotifyStatus> {
        guard contains(token), let cell = cell(of: token), let counter = CheckTable.counter(in: cell) else {
            return .failure(.invalidToken)
        }
        let posts = counter.pointee.load(ordering: .acquiring)
        let isPeekable = cell.pointee.isPeekable.load(ordering: .acquiring)
        // The cell may belong to another token by now.
        guard contains(token) else { return .failure(.invalidToken) }
        return isPeekable ? .success(posts) : .failure(.invalidRequest)
    }

    func contains(_ token: Int32) -> Bool {
        guard let cell = cell(of: token) else { return false }
        return cell.pointee.tokenAndSeen.load(ordering: .acquiring) >> 32 == UInt64(UInt32(bitPattern: token))
    }

    /// Forgets all tokens, without locking or allocating: for the child of fork(2).
    func abandon() {
        table.store(UInt(bitPattern: emptyTable), ordering: .releasing)
    }

    var size: Int { Int(currentTable.pointee.load(ordering: .relaxed)) + 1 }

    // MARK: - With the lock held

    /// Starts over after `abandon`; numbering continues.
    func restart() {
        count = 0
        freeCells = []
        freeCounters = []
        replaceTable(CheckTable.makeTable(size: CheckTable.firstSize))
    }

    private func replaceTable(_ new: Table) {
        memory.append(UnsafeMutableRawPointer(new))
        table.store(UInt(bitPattern: new), ordering: .releasing)
    }

    /// Gives a name its counter.
    func makeCounter() -> Counter {
        if freeCounters.isEmpty {
            let block = Counter.allocate(capacity: 64)
            memory.append(UnsafeMutableRawPointer(block))
            for index in 0..<64 {
                (block + index).initialize(to: Atomic(1))
                freeCounters.append(block + index)
            }
        }
        return freeCounters.removeLast()
    }

    func takeBack(_ counter: Counter) {
        freeCounters.append(counter)
    }

    /// Creates a token whose first check answers yes.
    ///
    /// - Returns: nil if all numbers have been used.
    func makeToken(counting counter: Counter, isPeekable: Bool) -> Int32? {
        let size = currentTable.pointee.load(ordering: .relaxed) + 1
        if count * 2 >= size { grow(to: size * 2) }
        let table = currentTable
        let mask = table.pointee.load(ordering: .relaxed)
        repeat {
            guard lastToken < UInt32(Int32.max) else { return nil }
            lastToken += 1
        } while table[Int(UInt(lastToken) & mask) + 1].load(ordering: .relaxed) != 0
        let cell = makeCell()
        let unseen = counter.pointee.load(ordering: .acquiring) &- 1
        cell.pointee.counter.store(UInt(bitPattern: counter), ordering: .relaxed)
        cell.pointee.isPeekable.store(isPeekable, ordering: .relaxed)
        cell.pointee.tokenAndSeen.store(UInt64(lastToken) << 32 | UInt64(unseen), ordering: .releasing)
        table[Int(UInt(lastToken) & mask) + 1].store(UInt(bitPattern: cell), ordering: .releasing)
        count += 1
        return Int32(bitPattern: lastToken)
    }

    func remove(_ token: Int32) {
        guard let cell = cell(of: token), contains(token) else { return }
        let table = currentTable
        cell.pointee.tokenAndSeen.store(0, ordering: .releasing)
        let place = UInt(UInt32(bitPattern: token)) & table.pointee.load(ordering: .relaxed)
        table[Int(place) + 1].store(0, ordering: .releasing)
        freeCells.append(cell)
        count -= 1
    }

    private func makeCell() -> CellPointer {
        if freeCells.isEmpty {
            let block = CellPointer.allocate(capacity: 64)
            memory.append(UnsafeMutableRawPointer(block))
            for index in 0..<64 {
                (block + index).initialize(to: Cell())
                freeCells.append(block + index)
            }
        }
        return freeCells.removeLast()
    }

    private func grow(to size: UInt) {
        let old = currentTable
        let new = CheckTable.makeTable(size: size)
        for index in 1...Int(old.pointee.load(ordering: .relaxed) + 1) {
            let address = old[index].load(ordering: .relaxed)
            guard let cell = CellPointer(bitPattern: address) else { continue }
            let token = UInt(cell.pointee.tokenAndSeen.load(ordering: .relaxed) >> 32)
            new[Int(token & (size - 1)) + 1].store(address, ordering: .relaxed)
        }
        replaceTable(new)
    }
}

// What programs call whenever they look into a cache, and in signal handlers: no lock, no closure, no reference counting.
// Reference counting would take 40 ns; the rest takes 4.5. Without an engine there are no tokens.

/// Implements `notify_check`.
package func checkToken(_ token: Int32, _ check: UnsafeMutablePointer<Int32>?) -> UInt32 {
    guard let check else { return 10 }
    switch TokenEngine.existing?._withUnsafeGuaranteedRef({ $0.table.check(token) }) {
    case false?: check.pointee = 0
    case true?: check.pointee = 1
    case nil: return 2
    }
    return 0
}

/// Implements `notify_peek`.
package func peekAtToken(_ token: Int32, _ value: UnsafeMutablePointer<UInt32>?) -> UInt32 {
    guard let value else { return 10 }
    switch TokenEngine.existing?._withUnsafeGuaranteedRef({ $0.table.posts(token) }) {
    case .success(let posts)?: value.pointee = posts
    case .failure(let status)?: return status.rawValue
    case nil: return 2
    }
    return 0
}

/// Implements `notify_is_valid_token`.
package func isValidToken(_ token: Int32) -> Bool {
    TokenEngine.existing?._withUnsafeGuaranteedRef { $0.table.contains(token) } ?? false
}
