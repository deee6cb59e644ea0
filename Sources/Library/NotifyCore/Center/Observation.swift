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
        /// Do not call this while you hold something that the callback waits for, such as a lock or the main queue: it
        /// waits for a callback that is running in another thread. For the same reason two callbacks must not cancel each
        /// other's observations; a debug build stops there. When called from inside its own callback it returns
        /// immediately, and that callback is the last. Further calls do nothing. This blocks the thread while it waits;
        /// asynchronous code uses a form that does not.
        ///
        /// The corresponding C function is `notify_cancel`.
        public func cancel() {
            center.engine.cancel(subscription)
        }

        /// Ends the observation without waiting.
        package func cancelWithoutWaiting() {
            center.engine.cancel(subscription, waits: false)
        }

        /// Ends the observation without waiting.
        ///
        /// - Parameter completion: called once its callback is not running; at once, or on the thread that ran it.
        package func cancel(then completion: @escaping @Sendable () -> Void) {
            center.engine.cancel(subscription, waits: false)
            observer.whenIdle(completion)
        }

        package var observer: Observer { subscription.observer }
    }
}
