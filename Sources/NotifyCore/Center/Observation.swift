// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// A registration of an observer.
    ///
    /// It ends when ``cancel()`` is called or when nothing refers to it any more. It keeps its center alive.
    public final class Observation: Sendable {
        private let center: NotifyCenter
        private let registration: Registration

        init(center: NotifyCenter, registration: Registration) {
            self.center = center
            self.registration = registration
        }

        deinit {
            cancel()
        }

        /// Ends the observation. When this returns, its callback does not run and never will again.
        ///
        /// A callback that is running in another thread is waited for: do not hold a lock that it needs. From inside
        /// its own callback this returns at once, and the callback is the last. Further calls do nothing.
        ///
        /// The corresponding C function is `notify_cancel`.
        public func cancel() {
            center.engine.cancel(registration)
        }
    }
}
