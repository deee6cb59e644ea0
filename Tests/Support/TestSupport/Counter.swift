// SPDX-License-Identifier: Apache-2.0

/// A number that callbacks increase and a test waits for.
public final class Counter: Sendable {
    private let count = Monitor(0)

    /// Starts at 0.
    public init() {}

    /// The number now.
    public var value: Int { count.read { $0 } }

    /// Adds to the number.
    public func add(_ amount: Int = 1) {
        count.change { $0 += amount }
    }

    /// Blocks until the number is at least `target`; returns whether that happened within `timeout`.
    public func wait(for target: Int, timeout: Duration = .patience) -> Bool {
        count.wait(until: Deadline(after: timeout)) { $0 >= target }
    }
}
