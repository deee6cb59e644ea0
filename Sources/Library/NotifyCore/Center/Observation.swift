// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// A registration of an observer.
    ///
    /// It ends when `cancel()` is called or the last reference to it is released. It keeps its center alive.
    package final class Observation: Sendable {
        private let center: NotifyCenter
        private let subscription: Subscription

        init(center: NotifyCenter, subscription: Subscription) {
            self.center = center
            self.subscription = subscription
        }

        deinit {
            // The thread that releases it may hold something that the callback waits for, such as the main queue.
            center.engine.cancel(subscription)
        }

        /// Ends the observation, and returns at once: its callback does not begin any more.
        package func cancel() {
            center.engine.cancel(subscription)
        }

        /// Ends the observation, and waits for a callback that is running in another thread.
        ///
        /// - Parameter timeout: how long to wait; nil means without limit.
        /// - Throws: `deadlock` or `timedOut`; the observation has ended in any case.
        package func cancelAndWait(timeout: Duration?) throws(NotifyBusError) {
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

        /// Schedules a callback of this observation on the center's thread, after all that is queued there. It does not
        /// begin once the observation has ended.
        package func enqueue(_ callback: @escaping @Sendable () -> Void) {
            let observer = observer
            center.engine.enqueue { _ = observer.cancellation.run(callback) }
        }

        package var observer: Observer { subscription.observer }
    }
}
