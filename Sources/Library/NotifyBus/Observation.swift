// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyCenter {
    /// A registration of an observer.
    ///
    /// It ends when `cancel()` is called or the last reference to it is released. It keeps its center alive.
    public final class Observation: Sendable {
        package let core: CoreCenter.Observation

        package init(_ core: CoreCenter.Observation) { self.core = core }

        /// Ends the observation, and returns at once: when this has returned, its callback does not begin any more.
        ///
        /// One that is running in another thread goes on to its end; `cancelAndWait()` waits for that. When this is called
        /// from inside its own callback, that one is the last. Further calls do nothing.
        public func cancel() { core.cancel() }

        /// Ends the observation, and waits for a callback that is running in another thread: when this has returned, its
        /// callback is not running and never will again. Blocks the thread.
        ///
        /// Do not call this while you hold something that the callback waits for, such as a lock or the main queue. When
        /// called from inside its own callback it does not wait for that one.
        ///
        /// The corresponding C function is `notify_cancel`.
        ///
        /// - Parameter timeout: how long to wait; nil means without limit.
        /// - Throws: ``NotifyBusError`` with the code `deadlock` if that callback waits, perhaps by way of others, for the
        ///   end of the one that makes this call, or `timedOut`. The observation has ended in any case: its callback
        ///   may be running, but does not run again.
        @available(*, noasync, message: "It blocks the thread; use 'await cancelAndWait()'.")
        public func cancelAndWait(timeout: Duration?) throws(NotifyBusError) {
            try rethrowing { () throws(CoreError) in try core.cancelAndWait(timeout: timeout) }
        }

        /// Ends the observation, and suspends the task while its callback is running in another thread: when this has returned,
        /// its callback is not running and never will again.
        ///
        /// Do not wait for this inside a callback by other means, such as a semaphore. Cancelling the task does not cut this
        /// short.
        public func cancelAndWait() async {
            let idle = Completion<Void>()
            core.cancel { idle.complete(.success(())) }
            try? await idle.valueDespiteCancellation()
        }
    }
}
