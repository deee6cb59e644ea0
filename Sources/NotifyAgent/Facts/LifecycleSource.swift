// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// A source that knows what people are looking at, and reports it to the agent.
///
/// A source works on a thread of its own or on the watcher's, and reports through its outlet. Nothing it does may block
/// the agent, and nothing external may terminate it: it then reports why it is not live, and retries later if that can
/// help. It lives from the first observer until there has been none for a while.
protocol LifecycleSource: AnyObject, Sendable {
    /// Starts. Whether it can, it reports through its outlet, now or later. Called once, on the agent's thread.
    func start()
    /// Stops, without being waited for. Called once, on the agent's thread.
    func stop()
    /// A process has started to observe, or an observing one has moved to another cgroup. Called on the agent's thread.
    func observerHasCome(_ process: ObservedProcess)
    /// Called on the agent's thread.
    func observerHasGone(_ process: ProcessID)
}

extension LifecycleSource {
    func observerHasCome(_ process: ObservedProcess) {}
    func observerHasGone(_ process: ProcessID) {}
}

/// How to create a source.
struct SourceMaker: Sendable {
    /// The name by which it is listed and configured.
    let name: String
    /// Why it can't work here at all; nil if it may.
    let obstacle: String?
    let make: @Sendable (FactOutlet) -> any LifecycleSource

    init(_ name: String, _ obstacle: String? = nil, _ make: @escaping @Sendable (FactOutlet) -> any LifecycleSource) {
        self.name = name
        self.obstacle = obstacle
        self.make = make
    }
}

/// What a source may know about an observing process.
struct ObservedProcess: Sendable {
    let id: ProcessID
    let application: String

    var pid: Int32 { id.pid }
    var user: UInt32 { id.user }
}

/// The interface of a source to the agent, for use on any thread while the source has not been stopped.
final class FactOutlet: Sendable {
    private let name: String
    private let board: FactBoard
    private let isOpen = Monitor(true)

    init(_ name: String, _ board: FactBoard) {
        self.name = name
        self.board = board
    }

    func close() {
        isOpen.withLock { $0 = false }
    }

    func say(_ condition: SourceCondition) {
        // With the lock held: after `close` nothing more is reported.
        isOpen.withLock { if $0 { board.post(name, condition) } }
    }

    func say(_ fact: Fact) {
        isOpen.withLock { if $0 { board.post(name, fact) } }
    }
}
