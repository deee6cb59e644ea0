// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Runs the blocking calls of asynchronous code on threads of Dispatch, so that they never block a thread of Swift's
/// cooperative pool. That has only one thread per core, and a bus may delay a registration for 25 seconds.
enum Waiting {
    private static let queue = DispatchQueue(label: "org.notifybus.waiting", attributes: .concurrent)

    static func perform<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withUnsafeContinuation { continuation in
            queue.async {
                do throws(Failure) {
                    try continuation.resume(returning: .success(body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }
}
