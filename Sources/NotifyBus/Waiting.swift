// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Where calls wait that asynchronous code makes: on threads of Dispatch, so that no thread of Swift's cooperative pool
/// stands still. There is one for each core, and a bus may keep a registration waiting for 25 seconds.
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
