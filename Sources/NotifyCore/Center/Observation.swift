// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// A registration of an observer.
    ///
    /// It ends when `cancel()` is called or when nothing refers to it any more. It keeps its center alive.
    ///
    /// To let go of it waits for nothing: no callback begins afterwards, but one that another thread has begun may still
    /// be running. `cancel()` waits for that.
    public final class Observation: Sendable {
        private let center: NotifyCenter
        private let subscription: Subscription

        init(center: NotifyCenter, subscription: Subscription) {
            self.center = center
            self.subscription = subscription
        }

        deinit {
            // Whoever lets go of it may hold what the callback waits for, such as the main queue.
            center.engine.cancel(subscription, waits: false)
        }

        /// Ends the observation. When this returns, its callback does not run and never will again.
        ///
        /// A callback that is running in another thread is waited for: do not hold a lock that it needs. From inside
        /// its own callback this returns at once, and the callback is the last. Further calls do nothing. This blocks the
        /// thread while it waits; asynchronous code gets the form that does not.
        ///
        /// The corresponding C function is `notify_cancel`.
        public func cancel() {
            center.engine.cancel(subscription)
        }

        /// Ends the observation, and waits for nothing.
        ///
        /// - Returns: whether a callback still runs in another thread, which `cancel()` would wait for.
        package func cancelWithoutWaiting() -> Bool {
            center.engine.cancel(subscription, waits: false)
        }
    }
}
