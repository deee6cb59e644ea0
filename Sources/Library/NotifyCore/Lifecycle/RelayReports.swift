// SPDX-License-Identifier: Apache-2.0

/// What a sandboxed program has yet to report to the relay of what it observes.
///
/// A user may have a limited number of calls pending, and a program may observe thousands of names at once. So one call is
/// made at a time, and whatever changes meanwhile goes into the next one.
package struct RelayReports: Sendable {
    package struct Batch: Equatable, Sendable {
        package var names: Set<String> = []
        package var prefixes: Set<String> = []

        package init(names: some Sequence<String> = [], prefixes: some Sequence<String> = []) {
            (self.names, self.prefixes) = (Set(names), Set(prefixes))
        }

        package var isEmpty: Bool { names.isEmpty && prefixes.isEmpty }
        package var count: Int { names.count + prefixes.count }

        mutating func add(_ other: Batch) {
            names.formUnion(other.names)
            prefixes.formUnion(other.prefixes)
        }

        mutating func remove(_ other: Batch) {
            if !names.isEmpty { names.subtract(other.names) }
            if !prefixes.isEmpty { prefixes.subtract(other.prefixes) }
        }

        /// Takes so many out.
        mutating func take(_ limit: Int) -> Batch {
            guard count > limit else {
                defer { self = Batch() }
                return self
            }
            let taken = Batch(names: names.prefix(limit), prefixes: prefixes.prefix(max(0, limit - names.count)))
            remove(taken)
            return taken
        }
    }

    /// How many names and prefixes go into one call.
    package static let limit = 1_024

    private var added = Batch()
    private var removed = Batch()
    /// Parts of calls that were refused: there may be nothing wrong with most of what they contain.
    private var parts: [Batch] = []
    private var isUnderWay = false

    package init() {}

    package mutating func add(_ batch: Batch) { added.add(batch) }

    package mutating func remove(_ batch: Batch) {
        added.remove(batch)
        for index in parts.indices { parts[index].remove(batch) }
        removed.add(batch)
    }

    /// What to report now, first what is no longer observed; nil if there is nothing, or a call is under way.
    package mutating func next() -> (removed: Batch, added: Batch)? {
        guard !isUnderWay else { return nil }
        let removed = removed.take(RelayReports.limit)
        var added = Batch()
        // A name that is observed again must be reported after its removal.
        if self.removed.isEmpty {
            while added.isEmpty, let part = parts.popLast() { added = part }
            if added.isEmpty { added = self.added.take(RelayReports.limit) }
        }
        guard !removed.isEmpty || !added.isEmpty else { return nil }
        isUnderWay = true
        return (removed, added)
    }

    /// What is still observed of what was added: it may have been observed again since, which is reported later.
    package func current(of added: Batch) -> Batch {
        var current = added
        current.remove(removed)
        return current
    }

    /// The call has been answered.
    ///
    /// - Returns: whether that is the answer for all that was added. Otherwise it is reported again in two parts.
    package mutating func wereAnswered(_ added: Batch, isRefusal: Bool) -> Bool {
        isUnderWay = false
        guard isRefusal, added.count > 1 else { return true }
        var rest = added
        rest.remove(removed)
        let half = rest.take(max(1, rest.count / 2))
        parts += [rest, half]
        return false
    }
}
