// SPDX-License-Identifier: Apache-2.0

/// A list that callbacks append to, in order, and a test waits for.
public final class Recorder<Element: Sendable>: Sendable {
    private let list = Monitor<[Element]>([])

    /// Starts empty.
    public init() {}

    /// All that was appended so far.
    public var elements: [Element] { list.read { $0 } }

    /// How much was appended so far.
    public var count: Int { list.read(\.count) }

    /// Appends to the list.
    public func append(_ element: Element) {
        list.change { $0.append(element) }
    }

    /// Blocks until there are at least `target` elements; returns whether that came true within `timeout`.
    public func wait(forCount target: Int, timeout: Duration = .patience) -> Bool {
        list.wait(until: Deadline(after: timeout)) { $0.count >= target }
    }

    /// Blocks until the elements are as wanted; returns whether that came true within `timeout`.
    ///
    /// The condition runs under the recorder's lock: it must not use the recorder.
    public func wait(timeout: Duration = .patience, until condition: ([Element]) -> Bool) -> Bool {
        list.wait(until: Deadline(after: timeout), condition)
    }
}
