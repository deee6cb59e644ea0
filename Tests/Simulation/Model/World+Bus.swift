// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

// The bus routes a message, or ends, and another is started.
extension World {
    func route(_ index: Int) {
        guard bus.connections.indices.contains(index) else { return }
        switch bus.route(index, encodes: encodes) {
        case .nothing: break
        case .asked(let serial): requestIsPassed(serial)
        case .routed(let post):
            oracle.routed(post, posts[post])
            noteTwins(posts[post].name)
            checkQueues(posts[post].name)
        case .agentIsToBeStarted: startAgent()
        case .closed: if mutation != .forgetsProcess { agent?.hungUp(index) }
        }
    }

    /// The agent may hear, on behalf of others, what is also in the stream of a stopped program.
    func noteTwins(_ name: Int) {
        guard let agent, processes.contains(where: \.isStoppedByOthers),
            (0...Subject.everything).contains(where: { Subject.matches($0, name) && agent.hears($0) })
        else { return }
        for (number, place) in places.enumerated() where processes[place.process].isStoppedByOthers {
            guard let connection = place.connection, bus[connection].isOpen else { continue }
            oracle.standsTwice(name, number)
        }
    }

    /// While a state in which nothing is heard is in force, the bus queues nothing for the program.
    func checkQueues(_ name: Int) {
        for (number, place) in places.enumerated() {
            // A program that has not heard its state yet is promised nothing. One that was stopped may still read an earlier
            // one, until its connection is ended.
            guard !oracle.stopped.contains(number), let state = oracle.contracts[number].known, state != .foreground,
                let connection = place.connection, bus[connection].isOpen, !observers[number].isEntering
            else { continue }
            if bus[connection].heard >> UInt8(name) & 1 == 1 {
                oracle.fail("the bus queues a post for observer \(number), which is in \(state)")
            }
        }
    }

    // MARK: - Another bus

    func endBus(_ readable: Int) {
        guard !bus.isAway, posts.count < 48 else { return }
        killAgent()
        // The programs that have exited are not known any more either.
        oracle.posterIsLost(posts.indices.filter { posts[$0].name == Subject.owned })
        for poster in posters { lose(poster) }
        let begin = observers.map(beginsAgain)
        for observer in observers where !observer.hasEnded {
            oracle.busIsGone(observer.number, begins: begin[observer.number])
        }
        bus.end(readable: readable)
        for control in controls { bus[control].inbox.removeAll() }
        for request in requests { requestEnded(request.serial, isDone: false) }
    }

    /// Whether nothing but the foreground can follow for an observer.
    private func beginsAgain(_ observer: SimulatedObserver) -> Bool {
        let together = oracle.reportedTogether[observer.process]
        return !processes[observer.process].isStopped && says(desktop, of: observer) != .background
            && together.allSatisfy { oracle.contracts[$0].known == .foreground && !oracle.stopped.contains($0) }
    }

    func startBus() {
        guard bus.isAway else { return }
        bus.begin()
        controls = controls.map { _ in bus.connect(.control) }
    }
}
