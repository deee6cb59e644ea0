// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus

/// Views, whose state belongs to the main actor.
@MainActor final class View {
    var title = ""
    private var observation: NotifyCenter.Observation?
    private var task: Task<Void, any Error>?

    /// From a callback of a toolkit, which is not asynchronous.
    func appear() throws {
        observation = try NotifyCenter.session.addObserver(for: .name(.changed), on: MainActor.shared) { [weak self] in
            self?.title = $0.string
        }
    }

    func appearWhenReady() async throws {
        observation = try await NotifyCenter.session.addObserver(
            for: .prefix("com.example."),
            on: MainActor.shared
        ) { [weak self] in self?.heard($0) }
    }

    func heard(_ name: NotifyName) { title = name.string }

    func disappear() {
        observation = nil
        task?.cancel()
    }

    func follow() {
        task = Task {
            for await name in try await NotifyCenter.session.notifications(for: .everything) { title = name.string }
        }
    }

    /// By the main queue, as before Swift's concurrency.
    func followByQueue() throws {
        observation = try NotifyCenter.session.addObserver(for: "com.example.x", queue: .main) { [weak self] name in
            MainActor.assumeIsolated { self?.title = name.string }
        }
    }

    func followState() async throws {
        try await NotifyCenter.session.lifecycle.setFollowsDesktop(true)
        for await state in try NotifyCenter.session.lifecycle.changes() { title = "\(state)" }
    }

    func followConnection() async {
        for await change in NotifyCenter.session.connectionChanges() { title = "\(change.kind)" }
    }

    func ask() async throws {
        let answer = try await NotifyCenter.session.next(of: "com.example.pong", timeout: .seconds(5)) {
            title = "asking"
            try await NotifyCenter.session.post("com.example.ping")
        }
        title = answer.string
    }
}
