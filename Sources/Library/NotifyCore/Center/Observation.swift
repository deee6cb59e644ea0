// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// A registration of an observer.
    ///
    /// It ends when `cancel()` is called or the last reference to it is released. It keeps its center alive.
    public final class Observation: Sendable {
        private let center: NotifyCenter
        private let subscription: Subscription

        init(center: NotifyCenter, subscription: Subscription) {
            self.center = center
            self.subscription = subscription
        }

        deinit {
            // Whoever releases it may hold something that the callback waits for, such as the main queue.
            center.engine.cancel(subscription)
        }

        /// Ends the observation, and returns at once: when this has returned, its callback does not begin any more.
        ///
        /// One that is running in another thread goes on to its end; `cancelAndWait()` waits for that. When this is called
        /// from inside its own callback, that one is the last. Further calls do nothing.
        public func cancel() {
            center.engine.cancel(subscription)
        }

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
            let deadline = MonotonicTime.after(timeout)
            center.engine.cancel(subscription)
            try observer.waitUntilIdle(until: deadline).get()
        }

        /// Ends the observation without waiting.
        ///
        /// - Parameter completion: called once its callback is not running; at once, or on the thread that ran it.
        package func cancel(then completion: @escaping @Sendable () -> Void) {
            center.engine.cancel(subscription)
            observer.whenIdle(completion)
        }

        package var observer: Observer { subscription.observer }
    }
}
