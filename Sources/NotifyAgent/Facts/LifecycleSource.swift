// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// A source that knows what people are looking at, and reports it to the agent.
///
/// It reports what it finds. Nothing it does may block the agent, and nothing external may terminate it: it then
/// reports why it is not live, and retries later if that can help. It lives from the first observer until there has been
/// none for a while.
protocol LifecycleSource: AnyObject {
    /// Starts. Whether it can, it reports, now or later. Called once.
    func start()
    /// Stops, without being waited for. Called once.
    func stop()
    /// A process has started to observe, or an observing one has moved to another cgroup.
    func observerHasCome(_ process: ObservedProcess)
    func observerHasGone(_ process: ProcessID)
}

extension LifecycleSource {
    func observerHasCome(_ process: ObservedProcess) {}
    func observerHasGone(_ process: ProcessID) {}
}

/// How to create a source.
struct SourceMaker {
    /// The name by which it is listed and configured.
    let name: String
    /// Why it can't work here at all; nil if it may.
    let obstacle: String?
    let make: (FactReporter) -> any LifecycleSource

    init(_ name: String, _ obstacle: String? = nil, _ make: @escaping (FactReporter) -> any LifecycleSource) {
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

/// How a source reports, until it has been stopped.
final class FactReporter {
    private let name: String
    private let board: FactBoard
    private var isOpen = true

    init(_ name: String, _ board: FactBoard) {
        self.name = name
        self.board = board
    }

    func close() { isOpen = false }

    func report(_ condition: SourceCondition) { if isOpen { board.post(name, condition) } }

    func report(_ fact: Fact) { if isOpen { board.post(name, fact) } }

    /// Passes on what a reporter on another thread has collected.
    func add(_ news: SourceNews) { if isOpen { board.post(name, news) } }
}
