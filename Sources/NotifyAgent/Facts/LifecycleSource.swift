// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// Something that knows what people look at, and tells the agent.
///
/// A source does its work on a thread of its own or on the watcher's, and puts what it finds on the board. Nothing it
/// does may hold up the agent, and nothing it meets outside may end it: then it says why it is not live, and tries again
/// later where that can help.
protocol LifecycleSource: AnyObject, Sendable {
    /// By which it is listed and configured.
    var name: String { get }

    /// Begins. Whether it can it says on the board, now or later. Called once.
    func start(_ board: FactBoard)
    /// Ends, without being waited for.
    func stop()
    /// Processes that observe have come, gone or moved to another cgroup. Called on the agent's thread.
    func observersHaveChanged(_ processes: [ObservedProcess])
}

extension LifecycleSource {
    func observersHaveChanged(_ processes: [ObservedProcess]) {}
}

/// What a source may know of a process that observes.
struct ObservedProcess: Sendable {
    let pid: Int32
    let application: String
    let user: UInt32
}

/// Whether a source is at work.
package enum SourceCondition: Equatable, Sendable {
    case live
    /// Not now, for this reason.
    case off(String)
}
