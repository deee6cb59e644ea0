// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A bus inside the process, for tests: names pass from center to center, and nothing is opened.
final class ProcessBus: Sendable {
    /// A center on it.
    private struct Member {
        weak var center: (any ProcessBusMember)?
        /// What it has posted while the bus was away.
        var queue = CoalescingQueue<NotifyName>()
    }

    private struct State {
        var isConnected = true
        var members: [Member] = []

        var centers: [any ProcessBusMember] { members.compactMap(\.center) }

        func index(of center: any ProcessBusMember) -> Int? { members.firstIndex { $0.center === center } }
    }

    private let state = Mutex(State())

    var isConnected: Bool { state.withLock { $0.isConnected } }

    func join(_ center: any ProcessBusMember) {
        state.withLock { state in
            state.members.removeAll { $0.center == nil }
            state.members.append(Member(center: center))
        }
    }

    func leave(_ center: any ProcessBusMember) {
        state.withLock { state in
            guard let index = state.index(of: center) else { return }
            center.counters.noteLost(state.members.remove(at: index).queue.count)
        }
    }

    /// Has every center hear a name, or keeps it while the bus is away.
    ///
    /// The lock is held meanwhile, so that two posts by one thread reach every observer in order.
    func post(_ name: NotifyName, by center: any ProcessBusMember) throws(NotifyBusError) {
        try state.withLock { state throws(NotifyBusError) in
            guard let index = state.index(of: center) else { throw .closed }
            // Names that begin with `self.` need no bus.
            if state.isConnected || name.staysInProcess {
                for member in state.centers { member.hear(name, from: center.counters) }
            } else {
                switch state.members[index].queue.enqueue(name) {
                case .queued: break
                case .coalesced: center.counters.coalescedPosts.increment()
                case .full: throw .queueFull(name, state.members[index].queue.count)
                }
            }
            center.counters.posted.increment()
        }
    }

    func waitingCount(of center: any ProcessBusMember) -> Int {
        state.withLock { state in state.index(of: center).map { state.members[$0].queue.count } ?? 0 }
    }

    /// Goes away, as a bus that ends, or comes back, with all that was posted meanwhile.
    func set(isConnected: Bool) {
        let centers: [any ProcessBusMember] = state.withLock { state in
            if state.isConnected == isConnected { return [] }
            state.isConnected = isConnected
            let centers = state.centers
            if !isConnected { return centers }
            // Before any center posts anything else.
            for index in state.members.indices {
                guard let poster = state.members[index].center else { continue }
                while let name = state.members[index].queue.popFirst() {
                    for center in centers { center.hear(name, from: poster.counters) }
                }
            }
            return centers
        }
        for center in centers { center.busHasChanged() }
    }
}

extension ProcessBus: Hashable {
    static func == (left: ProcessBus, right: ProcessBus) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A center on a bus inside the process.
protocol ProcessBusMember: AnyObject, Sendable {
    /// By which a post of its own is known.
    var counters: Counters { get }
    /// Passes a post on to observers.
    func hear(_ name: NotifyName, from poster: Counters)
    /// The bus has gone away, or is back.
    func busHasChanged()
}

extension NotifyCenter.Bus {
    /// A bus inside this process, for tests.
    package static func inProcess() -> NotifyCenter.Bus {
        NotifyCenter.Bus(kind: .address("process:"), process: ProcessBus())
    }

    /// Makes a bus of `inProcess()` go away, as if it had ended.
    package func disconnect() { ofThisProcess.set(isConnected: false) }

    /// Makes a bus of `inProcess()` come back.
    package func reconnect() { ofThisProcess.set(isConnected: true) }

    private var ofThisProcess: ProcessBus {
        guard let process else {
            preconditionFailure("Only a bus of inProcess() can be told to go away and come back.")
        }
        return process
    }
}
