// SPDX-License-Identifier: Apache-2.0

/// Something that happens once.
final class Barrier: Sendable {
    private struct Outcome {
        var result: Result<Void, NotifyBusError>?
    }

    private let outcome = Monitor(Outcome())
    private let completion: (@Sendable (Result<Void, NotifyBusError>) -> Void)?

    /// - Parameter completion: called once it has happened, on the thread where it did. It must only pass that on.
    init(_ completion: (@Sendable (Result<Void, NotifyBusError>) -> Void)? = nil) {
        self.completion = completion
    }

    var isComplete: Bool { outcome.withLock { $0.result != nil } }

    func complete(_ result: Result<Void, NotifyBusError>) {
        let isFirst = outcome.withLock { outcome in
            if outcome.result != nil { return false }
            outcome.result = result
            return true
        }
        outcome.wakeAll()
        if isFirst { completion?(result) }
    }

    /// - Parameter what: what the bus does, in an error.
    func wait(until deadline: MonotonicTime?, for what: String = "answer") throws(NotifyBusError) {
        let outcome: Outcome? = outcome.wait(until: deadline) { $0.result == nil ? nil : $0 }
        guard let result = outcome?.result else { throw .timedOut(what) }
        try result.get()
    }
}
