// SPDX-License-Identifier: Apache-2.0

#if ServiceLifecycle
    public import NotifyBus
    public import ServiceLifecycle

    /// A service that runs a closure for each notification, until the graceful shutdown.
    ///
    /// ```swift
    /// let reload = NotifyService(center, for: "com.example.config.changed") { _ in try await server.reload() }
    /// try await ServiceGroup(services: [server, reload], gracefulShutdownSignals: [.sigterm], logger: logger).run()
    /// ```
    ///
    /// Notifications are handled one at a time and in order. Up to 4,096 wait individually, then one per name.
    ///
    /// A graceful shutdown ends it at once, even if the bus does not answer and nothing is registered yet. A closure that is
    /// running goes on to its end; waiting notifications are dropped.
    public struct NotifyService: Service {
        private let center: NotifyCenter
        private let subject: NotifySubject
        private let ignoringOwnPosts: Bool
        private let handle: @Sendable (NotifyName) async throws -> Void

        /// Creates a service that observes names.
        ///
        /// - Parameters:
        ///   - center: the center that observes. One that waits for the bus lets the service run before there is one.
        ///   - name: the name to observe.
        ///   - others: more names. Observing them together costs about as much as observing one.
        ///   - ignoringOwnPosts: whether to ignore what this center posts.
        ///   - handle: runs in the task of the service. An error that it throws ends the service.
        public init(
            _ center: NotifyCenter = .session,
            for name: NotifyName,
            _ others: NotifyName...,
            ignoringOwnPosts: Bool = false,
            handle: @escaping @Sendable (NotifyName) async throws -> Void
        ) {
            self.init(center, matching: .names([name] + others), ignoringOwnPosts: ignoringOwnPosts, handle: handle)
        }

        /// Creates a service that observes everything that a subject includes.
        ///
        /// Otherwise like `init(_:for:_:ignoringOwnPosts:handle:)`.
        public init(
            _ center: NotifyCenter = .session,
            matching subject: NotifySubject,
            ignoringOwnPosts: Bool = false,
            handle: @escaping @Sendable (NotifyName) async throws -> Void
        ) {
            (self.center, self.subject, self.ignoringOwnPosts, self.handle) = (
                center, subject, ignoringOwnPosts, handle
            )
        }

        /// Observes until the graceful shutdown, or until the task is cancelled or the center closed.
        ///
        /// - Throws: what `NotifyCenter.notifications(matching:ignoringOwnPosts:)` throws, except `cancelled`; what the closure
        ///   throws.
        public func run() async throws {
            let (center, subject, ignoringOwnPosts) = (center, subject, ignoringOwnPosts)
            let notifications: NotifyCenter.Notifications
            do {
                notifications = try await cancelWhenGracefulShutdown {
                    try await center.notifications(matching: subject, ignoringOwnPosts: ignoringOwnPosts)
                }
            } catch NotifyBusError.Code.cancelled {
                return
            } catch {
                throw error
            }
            // Not by cancelling the task, in which the closure may be at work.
            try await withGracefulShutdownHandler {
                for await name in notifications { try await handle(name) }
            } onGracefulShutdown: {
                notifications.cancel()
            }
        }
    }
#endif
