// SPDX-License-Identifier: Apache-2.0

import NotifyNames

// The bus ends, and another is started.
extension World {
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
        bus[control].inbox.removeAll()
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
        control = bus.connect(.control)
    }
}
