// SPDX-License-Identifier: Apache-2.0

/// Names that were posted while the program was not listening: those that the agent has noted, or all observed names if
/// nobody knows.
struct MissedNames: Hashable {
    /// Names to deliver once, in this order.
    private var order: [NotifyName] = []
    private var next = 0
    private var waiting: Set<NotifyName> = []
    /// Names that were delivered because nobody knew what was posted, and that must not be delivered again if an agent
    /// knows them.
    private var unasked: Set<NotifyName> = []
    /// Whether posts were made that nobody knows of: an agent died that may have known those made while the program was
    /// suspended, or the bus has cut the connection off.
    private(set) var areUnknown = false
    /// Whether the agent has yet to deliver what it has noted, even if that is nothing: every resumption ends with
    /// that.
    private var expectsDelivery = false
    /// Whether every observed name waits for the gate to open.
    private var waitsWithEverything = false

    /// Whether names are waiting to be delivered.
    var isWaiting: Bool { next < order.count }

    /// The next name to deliver.
    mutating func takeNext() -> NotifyName? {
        guard next < order.count else { return nil }
        defer {
            next += 1
            if next == order.count { forgetWaiting() }
        }
        waiting.remove(order[next])
        return order[next]
    }

    private mutating func forgetWaiting() {
        (order, next, waiting) = ([], 0, [])
    }

    // MARK: - What the agent has noted

    mutating func expectDelivery(_ expects: Bool) { expectsDelivery = expects }

    /// Delivers each of these names once, as soon as posts may pass.
    mutating func deliver(_ names: [String]) {
        for text in names {
            guard let name = try? NotifyName(text), unasked.remove(name) == nil else { continue }
            enqueue(name)
        }
    }

    mutating func keep(_ names: [NotifyName]) { names.forEach { enqueue($0) } }

    private mutating func enqueue(_ name: NotifyName) {
        if waiting.insert(name).inserted { order.append(name) }
    }

    // MARK: - What nobody knows

    mutating func noteUnknown() { areUnknown = true }

    /// The agent has gone or been replaced, and with it what it had noted.
    ///
    /// - Parameters:
    ///   - isSuspended: whether posts may have been noted that were not delivered.
    ///   - isOpening: whether the gate is about to open.
    mutating func agentHasGone(isSuspended: Bool, isOpening: Bool) {
        let isCovered = isOpening && waitsWithEverything
        if (isSuspended || expectsDelivery) && !isCovered { areUnknown = true }
        expectsDelivery = false
    }

    /// A spurious notification beats silence: delivers every name if posts were made that nobody knows of.
    mutating func makeGood(_ delivered: [String], _ names: () -> [NotifyName]) {
        guard areUnknown else { return }
        areUnknown = false
        waitsWithEverything = true
        unasked = Set(names()).subtracting(delivered.compactMap { try? NotifyName($0) })
        for name in unasked { enqueue(name) }
    }

    /// A new agent starts recording what the program misses.
    mutating func startCounting() { unasked = [] }

    /// The observed names differ from those that are waiting.
    mutating func namesHaveChanged() { waitsWithEverything = false }

    mutating func gateIsOpen() { waitsWithEverything = false }

    /// Posts made in the background are never delivered.
    mutating func forgetAll() {
        (areUnknown, waitsWithEverything, unasked) = (false, false, [])
        forgetWaiting()
    }
}
