// SPDX-License-Identifier: Apache-2.0

/// What all traits that look at something share.
extension NotifyCenter {
    /// Runs a closure now, and again whenever something of a subject was posted or may have been: also when the bus is
    /// back, and when this program comes to the foreground. Posts that come while the closure runs cause one more run.
    ///
    /// Returns when the task is cancelled, also before the registration is live, or the center is closed.
    ///
    /// - Throws: what `addObserver(matching:ignoringOwnPosts:using:)` throws, except `cancelled`; what the closure throws.
    package func lookAgain(
        for subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        _ look: () async throws -> Void
    ) async throws {
        let (hints, hint) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        try await hintAtLooking(for: subject, ignoringOwnPosts: ignoringOwnPosts) {
            hint.yield()
        } closed: {
            hint.finish()
        } during: {
            for await _ in hints { try await look() }
        }
    }

    /// Calls a closure whenever `lookAgain` would run one, for as long as another closure runs.
    ///
    /// - Parameters:
    ///   - hint: called on the center's thread, or a task's. It must not wait.
    ///   - closed: called when there will be no more hints, since the center is closed.
    ///   - body: what to run. If the task is cancelled before the registration is live, it is not run.
    /// - Throws: what `addObserver(matching:ignoringOwnPosts:using:)` throws, except `cancelled`; what the body throws.
    package func hintAtLooking(
        for subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        hint: @escaping @Sendable () -> Void,
        closed: @escaping @Sendable () -> Void,
        during body: () async throws -> Void
    ) async throws {
        let observation: Observation
        do throws(NotifyBusError) {
            observation = try await addObserver(matching: subject, ignoringOwnPosts: ignoringOwnPosts) { _ in hint() }
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
                if change.kind == .connected && !isPresent { hint() }
                isPresent = false
            }
            closed()
        }
        let state = Task {
            var isPresent = true
            for await state in states {
                if state == .foreground && !isPresent { hint() }
                isPresent = false
            }
        }
        defer {
            connection.cancel()
            state.cancel()
        }
        hint()
        try await body()
    }
}
