// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter.Lifecycle {
    /// The current state, and its changes from now on. A task that does not keep up sees only the latest one.
    ///
    /// The sequence ends when the task is cancelled or the center is closed. Connects to the bus if nothing else has.
    ///
    /// - Throws: ``NotifyBusError`` with the code `closed` after `NotifyCenter.close()`, or `failed` if the system is
    ///   out of threads or descriptors.
    public func changes() throws(NotifyBusError) -> AsyncStream<NotifyCenter.LifecycleState> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: NotifyCenter.LifecycleState.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let (states, number) = try follow(
            LifecycleStates.Follower(change: { continuation.yield($0) }, end: { continuation.finish() }),
            beginningWithPresent: true
        )
        continuation.onTermination = { [weak states] _ in states?.remove(number) }
        return stream
    }

    /// Reports to the agent which state this program is in, and suspends the task until that is in effect for all its
    /// observers.
    public func report(
        _ state: NotifyCenter.LifecycleState,
        timeout: Duration = .seconds(10)
    ) async throws(NotifyBusError) {
        try await Waiting.perform { () throws(NotifyBusError) in try self.report(state, timeout: timeout) }
    }
}
