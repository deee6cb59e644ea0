// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter.Lifecycle {
    /// The changes of the state from now on. Only the newest waits for a task that does not keep up.
    ///
    /// The sequence ends when the task is cancelled or the center is closed. It connects to the bus, if nothing
    /// else has.
    ///
    /// - Throws: ``NotifyBusError`` with the code `closed` after ``NotifyCenter/close()``, or `failed` if threads or
    ///   descriptors ran out.
    public func changes() throws(NotifyBusError) -> AsyncStream<NotifyCenter.LifecycleState> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: NotifyCenter.LifecycleState.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let (states, number) = try follow(
            LifecycleStates.Follower(change: { continuation.yield($0) }, end: { continuation.finish() })
        )
        continuation.onTermination = { [weak states] _ in states?.remove(number) }
        return stream
    }
}
