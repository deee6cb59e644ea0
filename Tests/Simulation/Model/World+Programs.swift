// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// Programs are stopped, cut off and killed.
extension World {
    func stop(_ process: Int, tears: Bool) {
        guard !processes[process].isStopped, !processes[process].hasEnded else { return }
        processes[process].isStoppedByOthers = true
        let posts = unreadPosts
        for observer in observers where observer.process == process && !observer.hasEnded {
            if let connection = observer.connection {
                for case .post(let post) in bus[connection].inbox.waiting where posts >> UInt64(post) & 1 == 1 {
                    oracle.standsTwice(self.posts[post].name, observer.number)
                }
                // It may have heard these just before.
                for name in agent?.unconfirmedNames(of: connection) ?? [] {
                    oracle.standsTwice(name, observer.number)
                }
            }
            oracle.processStopped(observer.number, unread: posts)
            if tears, let connection = observer.connection { bus[connection].isTorn = true }
        }
    }

    /// Posts that the agent was sent and has not processed yet, a bit for each.
    var unreadPosts: UInt64 {
        var posts = agent?.senders.posts ?? 0
        for post in agent?.predecessor?.found ?? [] { posts |= 1 << UInt64(post) }
        for connection in connectionsOfAgents {
            for case .post(let post) in bus[connection].inbox.waiting { posts |= 1 << UInt64(post) }
        }
        return posts
    }

    func notice(_ process: Int) {
        guard let agent, agent.isAlive, canNotice(process, agent) else { return }
        processes[process].isKnownToStand = processes[process].isStoppedByOthers
        let id = SimulatedAgent.process(process)
        agent.news.append(processes[process].isStoppedByOthers ? .processStopped(id) : .processContinued(id))
    }

    func kill(_ process: Int) {
        guard !processes[process].hasEnded else { return }
        processes[process].hasEnded = true
        (processes[process].isStoppedByOthers, processes[process].isNapping) = (false, false)
        for observer in observers where observer.process == process {
            observer.end(self)
            for (name, state) in nameStates where state.setter == observer.number { nameStates[name]?.setter = nil }
            observesNoMore(observer.number)
            for number in registrations.indices where registrations[number].observer == observer.number {
                registrations[number].isCancelled = true
                oracle.cancel(number)
            }
        }
        if mutation != .forgetsProcess { agent?.news.append(.processEnded(SimulatedAgent.process(process))) }
    }

    /// The bus cuts off a connection that has read too slowly.
    func cut(_ observer: Int, _ readable: Int) {
        guard let connection = observers[observer].connection, bus[connection].isOpen else { return }
        oracle.connectionLost(observer)
        observesNoMore(observer)
        bus.disconnect(connection, readable: readable)
        agent?.hungUp(connection)
    }

    /// A program has closed its connection.
    func closed(_ index: Int) { agent?.hungUp(index) }

    /// The socket of a connection is shut down from outside.
    func close(_ index: Int) { bus.disconnect(index) }
}
