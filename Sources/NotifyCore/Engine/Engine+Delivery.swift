// SPDX-License-Identifier: Apache-2.0

extension Engine {
    /// Queues a name for an observer whose callback runs on the center's thread. May be called by any thread.
    func offer(_ name: NotifyName, to observer: Observer) {
        let mustWake = delivery.withLock { delivery in
            guard observer.enqueue(name) else { return false }
            delivery.ready.append(.drain(observer))
            return !delivery.isTaken
        }
        // The thread that runs callbacks now checks again before it stops.
        if mustWake { wake() }
    }

    /// Schedules a call on the center's thread, after all deliveries that are now queued.
    ///
    /// In two steps: an observer whose turn started before its last names arrived gets those in its next turn.
    func enqueueLast(_ call: @escaping @Sendable () -> Void) {
        enqueue { self.enqueue(call) }
    }

    /// Schedules a call on the center's thread.
    func enqueue(_ call: @escaping @Sendable () -> Void) {
        let mustWake = delivery.withLock { delivery in
            delivery.ready.append(.call(call))
            return !delivery.isTaken
        }
        if mustWake { wake() }
    }

    /// Becomes the thread that runs callbacks, if there is none.
    ///
    /// - Returns: the work to do; nil if another thread is running callbacks.
    func takeDelivery() -> [Work]? {
        delivery.withLock { delivery in
            if delivery.isTaken { return nil }
            delivery.isTaken = true
            return delivery.takeReady()
        }
    }

    /// Takes all pending work; if there is none, gives up delivery if asked to.
    func takeWork(orGiveUp givesUp: Bool) -> [Work] {
        delivery.withLock { delivery in
            let work = delivery.takeReady()
            if givesUp, work.isEmpty { delivery.isTaken = false }
            return work
        }
    }

    func run(_ work: Work) {
        switch work {
        case .call(let call):
            call()
        case .drain(let observer):
            // Only what is queued now, so that the others get their turn; later arrivals wait for the next one.
            for _ in 0..<max(1, observer.waitingCount) {
                guard let name = observer.takeNext() else { return }
                observer.call(name)
            }
            delivery.withLock { $0.ready.append(.drain(observer)) }
        }
    }
}
