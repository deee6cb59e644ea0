// SPDX-License-Identifier: Apache-2.0

extension Engine {
    /// Leaves a name for an observer whose callback runs on the center's thread; called by any thread.
    func offer(_ name: NotifyName, to observer: Observer) {
        let mustWake = delivery.withLock { delivery in
            guard observer.enqueue(name) else { return false }
            delivery.ready.append(.drain(observer))
            return !delivery.isTaken
        }
        // Whoever runs callbacks now looks again before it stops.
        if mustWake { wake() }
    }

    /// Leaves something to be called on the center's thread, after all deliveries that wait now.
    ///
    /// In two steps: an observer whose turn began before the last of its names came gets those in its next turn.
    func enqueueLast(_ call: @escaping @Sendable () -> Void) {
        enqueue { self.enqueue(call) }
    }

    /// Leaves something to be called on the center's thread.
    func enqueue(_ call: @escaping @Sendable () -> Void) {
        let mustWake = delivery.withLock { delivery in
            delivery.ready.append(.call(call))
            return !delivery.isTaken
        }
        if mustWake { wake() }
    }

    /// Becomes the thread that runs callbacks, if none does.
    ///
    /// - Returns: what is to be done; nil if another thread runs callbacks.
    func takeDelivery() -> [Work]? {
        delivery.withLock { delivery in
            if delivery.isTaken { return nil }
            delivery.isTaken = true
            return delivery.takeReady()
        }
    }

    /// Takes all that is to be done; with nothing left, gives delivery up if asked to.
    func takeWork(orGiveUp givesUp: Bool) -> [Work] {
        delivery.withLock { delivery in
            let work = delivery.takeReady()
            if givesUp, work.isEmpty { delivery.isTaken = false }
            return work
        }
    }

    /// Runs callbacks until none is left, for a thread that has taken delivery.
    func deliverAll() {
        while true {
            let work = takeWork(orGiveUp: true)
            if work.isEmpty { return }
            work.forEach(run)
        }
    }

    func run(_ work: Work) {
        switch work {
        case .call(let call):
            call()
        case .drain(let observer):
            // Only what waits now, so that the others get their turn; what comes meanwhile waits for the next one.
            for _ in 0..<max(1, observer.waitingCount) {
                guard let name = observer.takeNext() else { return }
                observer.call(name)
            }
            delivery.withLock { $0.ready.append(.drain(observer)) }
        }
    }
}
