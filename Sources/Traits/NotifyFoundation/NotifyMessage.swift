// SPDX-License-Identifier: Apache-2.0

#if Foundation
    #if compiler(<6.3)
        #error("The trait Foundation of NotifyBus needs Swift 6.3: before, Foundation has no such messages on Linux.")
    #endif
    public import FoundationEssentials
    public import NotifyBus

    /// A message of Foundation's `NotificationCenter` that stands for a name on the bus.
    ///
    /// ```swift
    /// struct SettingsChanged: NotificationCenter.AsyncMessage, NotifyMessage {
    ///     typealias Subject = Settings
    ///     static let notifyName: NotifyName = "com.example.settings.changed"
    ///     var origin = NotifyMessageOrigin.program
    /// }
    /// ```
    ///
    /// ``NotifyMessageBridge`` passes it on in both directions.
    public protocol NotifyMessage: SendableMetatype {
        /// The name.
        static var notifyName: NotifyName { get }

        /// Where it was posted. The bridge passes nothing on to the bus that came from there.
        var origin: NotifyMessageOrigin { get }

        /// Creates the message.
        init(origin: NotifyMessageOrigin)
    }

    /// Where a ``NotifyMessage`` was posted.
    public enum NotifyMessageOrigin: Hashable, Sendable {
        /// By this program, to Foundation's center.
        case program
        /// By any other program, on the bus.
        case bus
    }

    /// Passes a message on between Foundation's `NotificationCenter` and the bus, as long as it lives.
    ///
    /// ```swift
    /// let bridge = try await NotifyMessageBridge(SettingsChanged.self, subject: settings)
    /// NotificationCenter.default.post(SettingsChanged(), subject: settings)  // Other programs hear the name.
    /// ```
    ///
    /// A message that the program posts is posted on the bus once, and a name that others post becomes one message.
    /// Posts of its own center do not become messages, as the program has had them.
    public final class NotifyMessageBridge: Sendable {
        private let observation: NotifyCenter.Observation
        private let token: NotificationCenter.ObservationToken
        private let notifications: NotificationCenter

        /// Begins to pass on messages that are delivered asynchronously. Suspends the task until the bus has confirmed the
        /// registration.
        ///
        /// - Parameters:
        ///   - type: the message.
        ///   - subject: whose message it is.
        ///   - center: the center that posts and observes the name.
        ///   - notifications: Foundation's center.
        /// - Throws: what `NotifyCenter.addObserver(for:_:ignoringOwnPosts:using:)` throws.
        public init<Message: NotifyMessage & NotificationCenter.AsyncMessage>(
            _ type: Message.Type,
            subject: Message.Subject,
            center: NotifyCenter = .session,
            notifications: NotificationCenter = .default
        ) async throws(NotifyBusError) where Message.Subject: AnyObject & Sendable {
            observation = try await center.addObserver(for: Message.notifyName, ignoringOwnPosts: true) { _ in
                notifications.post(Message(origin: .bus), subject: subject)
            }
            token = notifications.addObserver(of: subject, for: Message.self) { message in
                if message.origin == .program { try? center.post(Message.notifyName) }
            }
            self.notifications = notifications
        }

        /// Begins to pass on messages that are delivered on the main actor. Suspends the task until the bus has confirmed the
        /// registration.
        ///
        /// Otherwise like the other initializer.
        @MainActor
        public init<Message: NotifyMessage & NotificationCenter.MainActorMessage>(
            _ type: Message.Type,
            subject: Message.Subject,
            center: NotifyCenter = .session,
            notifications: NotificationCenter = .default
        ) async throws(NotifyBusError) where Message.Subject: AnyObject & Sendable {
            observation = try await center.addObserver(
                for: Message.notifyName,
                ignoringOwnPosts: true,
                on: MainActor.shared
            ) { _ in
                notifications.post(Message(origin: .bus), subject: subject)
            }
            token = notifications.addObserver(of: subject, for: Message.self) { message in
                if message.origin == .program { try? center.post(Message.notifyName) }
            }
            self.notifications = notifications
        }

        /// Ends it. A message that Foundation's center has already taken is still delivered, and passed on.
        public func cancel() {
            observation.cancel()
            notifications.removeObserver(token)
        }

        deinit { cancel() }
    }
#endif
