// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus

/// Views, whose state belongs to the main actor.
@MainActor final class View {
    var title = ""
    private var observation: NotifyCenter.Observation?
    private var task: Task<Void, any Error>?

    /// From a callback of a toolkit, which is not asynchronous.
    func appear() {
        task = Task {
            observation = try await NotifyCenter.session.addObserver(for: .changed, on: MainActor.shared) {
                [weak self] in
                self?.title = $0.rawValue
            }
        }
    }

    func appearWhenReady() async throws {
        observation = try await NotifyCenter.session.addObserver(
            matching: .prefix("com.example."),
            on: MainActor.shared
        ) { [weak self] in self?.heard($0) }
    }

    func heard(_ name: NotifyName) { title = name.rawValue }

    func disappear() {
        observation = nil
        task?.cancel()
    }

    func follow() {
        task = Task {
            for await name in try await NotifyCenter.session.notifications(matching: .everything) {
                title = name.rawValue
            }
        }
    }

    /// By the main queue, as before Swift's concurrency.
    func followByQueue() throws {
        observation = try NotifyCenter.session.addObserver(for: "com.example.x", queue: .main, timeout: .seconds(5)) {
            [weak self] name in
            MainActor.assumeIsolated { self?.title = name.rawValue }
        }
    }

    func followState() async throws {
        try await NotifyCenter.session.lifecycle.setFollowsDesktop(true)
        for await state in try NotifyCenter.session.lifecycle.changes() { title = "\(state)" }
    }

    func followConnection() async {
        for await change in NotifyCenter.session.connectionChanges() { title = "\(change)" }
    }

    func ask() async throws {
        let answer = try await NotifyCenter.session.next(of: "com.example.pong", timeout: .seconds(5)) {
            title = "asking"
            try NotifyCenter.session.post("com.example.ping")
        }
        title = answer.rawValue
    }
}
