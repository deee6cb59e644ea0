// SPDX-License-Identifier: Apache-2.0

/// A list to which callbacks append in order, and for which a test waits.
public final class Recorder<Element: Sendable>: Sendable {
    private let list = Monitor<[Element]>([])

    /// Starts empty.
    public init() {}

    /// All elements so far.
    public var elements: [Element] { list.read { $0 } }

    /// The number of elements so far.
    public var count: Int { list.read(\.count) }

    /// Appends to the list.
    public func append(_ element: Element) {
        list.change { $0.append(element) }
    }

    /// Blocks until there are at least `target` elements; returns whether that happened within `timeout`.
    public func wait(forCount target: Int, timeout: Duration = .patience) -> Bool {
        list.wait(until: Deadline(after: timeout)) { $0.count >= target }
    }

    /// Blocks until the elements meet a condition; returns whether that happened within `timeout`.
    ///
    /// The condition runs under the recorder's lock: it must not use the recorder.
    public func wait(timeout: Duration = .patience, until condition: ([Element]) -> Bool) -> Bool {
        list.wait(until: Deadline(after: timeout), condition)
    }
}

extension Recorder<String> {
    /// Appends a name from a bus. Those that stay in the process are left out: other tests run in this process, and an
    /// observer of all names hears theirs too.
    public func appendFromBus(_ name: String) {
        if !name.hasPrefix("self.") { append(name) }
    }
}
