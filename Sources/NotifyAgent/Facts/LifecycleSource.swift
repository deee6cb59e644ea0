// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// Something that knows what people look at, and tells the agent.
///
/// A source does its work on a thread of its own or on the watcher's, and says what it finds by its outlet. Nothing it
/// does may hold up the agent, and nothing it meets outside may end it: then it says why it is not live, and tries again
/// later where that can help. It lives from the first observer until there has been none for a while.
protocol LifecycleSource: AnyObject, Sendable {
    /// Begins. Whether it can it says by its outlet, now or later. Called once, on the agent's thread.
    func start()
    /// Ends, without being waited for. Called once, on the agent's thread.
    func stop()
    /// A process observes, or one that does has moved to another cgroup. Called on the agent's thread.
    func observerHasCome(_ process: ObservedProcess)
    /// Called on the agent's thread.
    func observerHasGone(_ process: ProcessID)
}

extension LifecycleSource {
    func observerHasCome(_ process: ObservedProcess) {}
    func observerHasGone(_ process: ProcessID) {}
}

/// How a source is made.
struct SourceMaker: Sendable {
    /// By which it is listed and configured.
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

/// What a source may know of a process that observes.
struct ObservedProcess: Sendable {
    let id: ProcessID
    let application: String

    var pid: Int32 { id.pid }
    var user: UInt32 { id.user }
}

/// By what a source speaks to the agent, from any thread, as long as it has not been stopped.
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
        // Under the lock: after `close` nothing more comes.
        isOpen.withLock { if $0 { board.post(name, condition) } }
    }

    func say(_ fact: Fact) {
        isOpen.withLock { if $0 { board.post(name, fact) } }
    }
}
