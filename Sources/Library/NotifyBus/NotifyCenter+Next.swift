// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension NotifyCenter {
    /// The next notification posted from now on.
    ///
    /// - Parameters:
    ///   - name: the name to wait for.
    ///   - others: more names, any of which will do.
    ///   - ignoringOwnPosts: whether to ignore what this center posts.
    ///   - timeout: how long to wait, including for the bus; nil means without limit.
    /// - Throws: ``NotifyBusError`` with the code `timedOut` if there was none in time, `cancelled` if the task was
    ///   cancelled, `closed` if the center is closed, or what `addObserver(for:_:ignoringOwnPosts:using:)` throws.
    ///   Nothing is registered afterwards.
    public func next(
        of name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        timeout: Duration? = nil
    ) async throws(NotifyBusError) -> NotifyName {
        try await next(matching: .names([name] + others), ignoringOwnPosts: ignoringOwnPosts, timeout: timeout)
    }

    /// The next notification of anything that a subject includes.
    ///
    /// Otherwise like `next(of:_:ignoringOwnPosts:timeout:)`.
    public func next(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        timeout: Duration? = nil
    ) async throws(NotifyBusError) -> NotifyName {
        let wait = try startWaiting(subject, ignoringOwnPosts, timeout)
        defer { wait.end() }
        return NotifyName(try await wait.notification.value())
    }

    /// The next notification, after an action that leads to it: a request, say, whose answer this waits for.
    ///
    /// ```swift
    /// let answer = try await center.next(of: "com.example.pong", timeout: .seconds(5)) {
    ///     try center.post("com.example.ping")
    /// }
    /// ```
    ///
    /// The corresponding command is `notify-wait --timeout 5s --then 'notify-post com.example.ping' com.example.pong`.
    ///
    /// - Parameters:
    ///   - name: the name to wait for.
    ///   - others: more names, any of which will do.
    ///   - ignoringOwnPosts: whether to ignore what this center posts.
    ///   - timeout: how long to wait, including for the bus and the action; nil means without limit. The action is not
    ///     interrupted.
    ///   - action: runs once, when every later post is heard. It is not run if the bus does not get that far in time.
    /// - Throws: a ``NotifyBusError``, as `next(of:_:ignoringOwnPosts:timeout:)` does; or, unchanged, whatever error the
    ///   action throws. Nothing is registered afterwards.
    public func next(
        of name: NotifyName,
        _ others: NotifyName...,
        ignoringOwnPosts: Bool = false,
        timeout: Duration? = nil,
        onceLive action: () async throws -> Void
    ) async throws -> NotifyName {
        try await next(
            matching: .names([name] + others),
            ignoringOwnPosts: ignoringOwnPosts,
            timeout: timeout,
            onceLive: action
        )
    }

    /// The next notification of anything that a subject includes, after an action that leads to it.
    ///
    /// Otherwise like `next(of:_:ignoringOwnPosts:timeout:onceLive:)`.
    public func next(
        matching subject: NotifySubject,
        ignoringOwnPosts: Bool = false,
        timeout: Duration? = nil,
        onceLive action: () async throws -> Void
    ) async throws -> NotifyName {
        let wait = try startWaiting(subject, ignoringOwnPosts, timeout)
        defer { wait.end() }
        try await wait.live.value()
        try await action()
        return NotifyName(try await wait.notification.value())
    }

    private func startWaiting(
        _ subject: NotifySubject,
        _ ignoringOwnPosts: Bool,
        _ timeout: Duration?
    ) throws(NotifyBusError) -> Wait {
        let (live, notification) = (Completion<Void>(), Completion<CoreName>())
        let observation = try rethrowing { () throws(CoreError) in
            try core.startObserving(
                subject.core,
                ignoringOwnPosts: ignoringOwnPosts,
                waitsForBus: core.waitsForBus,
                client: FirstClient(notification: notification),
                whenLive: { result in
                    live.complete(result)
                    if case .failure(let error) = result { notification.complete(.failure(error)) }
                }
            )
        }
        // A longer time than the clock can add is no limit.
        let timer = MonotonicTime.after(timeout).flatMap { _ in timeout }.map { timeout in
            Task {
                guard (try? await Task.sleep(for: timeout)) != nil else { return }
                live.complete(.failure(.notInTime("The bus did not confirm the registration in time.")))
                notification.complete(.failure(.notInTime("Nothing that was waited for was posted in time.")))
            }
        }
        return Wait(live: live, notification: notification, observation: observation, timer: timer)
    }
}

/// An observer of one notification, and the timer that ends the wait for it.
private struct Wait {
    let live: Completion<Void>
    let notification: Completion<CoreName>
    let observation: CoreCenter.Observation
    let timer: Task<Void, Never>?

    func end() {
        timer?.cancel()
        observation.cancel()
    }
}

/// Completes with the first name that an observer hears.
private struct FirstClient: ObserverClient {
    let notification: Completion<CoreName>

    func wake(for observer: Observer) {
        if let name = observer.takeNextToHandOver() { notification.complete(.success(name)) }
    }

    func end() {
        notification.complete(.failure(.closed))
    }
}

extension CoreError {
    fileprivate static func notInTime(_ description: String) -> CoreError {
        CoreError(.timedOut, description)
    }
}
