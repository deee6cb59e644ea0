// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// A registration of an observer.
    ///
    /// It ends when `cancel()` is called or the last reference to it is released. It keeps its center alive.
    ///
    /// Releasing it does not block: no callback starts afterwards, but one that is already running in another thread
    /// may still be running. `cancel()` waits for that.
    public final class Observation: Sendable {
        private let center: NotifyCenter
        private let subscription: Subscription

        init(center: NotifyCenter, subscription: Subscription) {
            self.center = center
            self.subscription = subscription
        }

        deinit {
            // Whoever releases it may hold something that the callback waits for, such as the main queue.
            center.engine.cancel(subscription, waits: false)
        }

        /// Ends the observation. When this returns, its callback is not running and never will again.
        ///
        /// It waits for a callback that is running in another thread, so do not hold a lock that the callback needs.
        /// When called from inside its own callback it returns immediately, and that callback is the last. Further
        /// calls do nothing. Two callbacks in different threads that cancel each other's observations would wait for each
        /// other for ever; a debug build stops there. This blocks the thread while it waits; asynchronous code uses a form that does not.
        ///
        /// The corresponding C function is `notify_cancel`.
        public func cancel() {
            center.engine.cancel(subscription)
        }

        /// Ends the observation without waiting.
        ///
        /// - Returns: whether a callback is still running in another thread, which `cancel()` would wait for.
        package func cancelWithoutWaiting() -> Bool {
            center.engine.cancel(subscription, waits: false)
        }
    }
}
