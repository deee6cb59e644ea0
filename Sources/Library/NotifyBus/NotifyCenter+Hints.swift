// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Runs a closure now, and again whenever something of a subject was posted or may have been: also when the bus is
    /// back, and when this program comes to the foreground. What comes while the closure runs is one more run.
    ///
    /// Returns when the task is cancelled, also before the registration is live, or the center is closed.
    ///
    /// This is what all traits that look at something share.
    ///
    /// - Throws: what `addObserver(matching:ignoringOwnPosts:using:)` throws, except `cancelled`; what the closure throws.
    package func lookAgain(
        for subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        _ look: () async throws -> Void
    ) async throws {
        let (hints, hint) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let observation: Observation
        do throws(NotifyBusError) {
            observation = try await addObserver(matching: subject, ignoringOwnPosts: ignoringOwnPosts) { _ in
                hint.yield()
            }
        } catch {
            if error.code == .cancelled { return }
            throw error
        }
        defer { observation.cancel() }
        // The present is what the first look sees.
        let (changes, states) = (connectionChanges(), try lifecycle.changes())
        let connection = Task {
            var isPresent = true
            for await change in changes {
                if change.kind == .connected && !isPresent { hint.yield() }
                isPresent = false
            }
            hint.finish()
        }
        let state = Task {
            var isPresent = true
            for await state in states {
                if state == .foreground && !isPresent { hint.yield() }
                isPresent = false
            }
        }
        defer {
            connection.cancel()
            state.cancel()
        }
        hint.yield()
        for await _ in hints { try await look() }
    }
}
