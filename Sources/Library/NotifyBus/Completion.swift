// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import Synchronization

/// Something that happens once, on some thread of the center, and that one task waits for. No thread waits with it.
final class Completion<Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, CoreError>

    private enum State {
        case pending
        case awaited(UnsafeContinuation<Outcome, Never>)
        case complete(Outcome)
    }

    private let state = Mutex(State.pending)

    /// Only the first call has an effect.
    func complete(_ result: Result<Value, CoreError>) {
        let continuation: UnsafeContinuation<Outcome, Never>? = state.withLock { state in
            switch state {
            case .complete: return nil
            case .pending:
                state = .complete(result)
                return nil
            case .awaited(let continuation):
                state = .complete(result)
                return continuation
            }
        }
        continuation?.resume(returning: result)
    }

    /// Suspends the task until it has happened.
    ///
    /// - Throws: also an error with the code `cancelled`, as soon as the task is cancelled.
    func value() async throws(NotifyBusError) -> Value {
        try await withTaskCancellationHandler {
            await outcome()
        } onCancel: {
            complete(.failure(.cancelled))
        }.published.get()
    }

    /// The same, whether or not the task is cancelled.
    func valueDespiteCancellation() async throws(NotifyBusError) -> Value {
        try await outcome().published.get()
    }

    private func outcome() async -> Outcome {
        await withUnsafeContinuation { continuation in
            let outcome: Outcome? = state.withLock { state in
                if case .complete(let outcome) = state { return outcome }
                state = .awaited(continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }
}

extension CoreError {
    fileprivate static let cancelled = CoreError(.cancelled, "The task was cancelled before this was done.")
}
