// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// The callbacks of a connection's registrations, which may be slow: their real queues, and a model of the thread that
/// runs them in turn.
struct SimulatedCallbacks: Hashable {
    private struct Callback: Hashable {
        var queue: DeliveryQueue<Waiting>
        var promise: QueuePromise
    }

    private var callbacks: [Int: Callback] = [:]
    /// The registrations for which something waits.
    private var ready: [Int] = []
    private struct Turn: Hashable {
        let registration: Int
        /// How many names are left of it.
        var left: Int
    }

    /// Whose turn it is.
    private var turn: Turn?
    /// Whether a callback takes long, so that what arrives meanwhile is queued.
    private var isRunning = false

    var hasWork: Bool { isRunning || turn != nil || !ready.isEmpty }

    mutating func beginLongOne() { isRunning = true }

    /// A name has arrived for these registrations.
    mutating func take(_ name: Int, for audience: [Int], _ world: World) {
        let mustQueue = world.mutation == .callsPastQueue ? isRunning : hasWork
        for registration in audience {
            if !mustQueue {
                if let waiting = callbacks[registration]?.promise.count, waiting > 0 {
                    world.oracle.fail("registration \(registration) is called, and \(waiting) names wait for it")
                }
                continue
            }
            queue(name, for: registration, world)
        }
    }

    private mutating func queue(_ name: Int, for registration: Int, _ world: World) {
        let scarcity = world.setting.scarcity
        if callbacks[registration] == nil {
            let coalesces = world.mutation == .coalescesDeliveriesEarly
            callbacks[registration] = Callback(
                queue: DeliveryQueue(coalesces ? CoalescingQueue(individualLimit: 0, limit: 4) : scarcity.queue()),
                promise: QueuePromise(scarcity)
            )
        }
        guard let (outcome, mustAnnounce) = callbacks[registration]?.queue.enqueue(Waiting(name: name)) else { return }
        world.note("  registration \(registration): \(outcome)")
        if mustAnnounce { ready.append(registration) }
        if let fault = callbacks[registration]?.promise.offered(name, outcome) {
            world.oracle.fail("the queue of registration \(registration) \(fault)")
        }
        switch outcome {
        case .queued: break
        case .coalesced: world.oracle.exceed(.coalescedDelivery)
        case .full: world.oracle.exceed(.droppedDelivery)
        }
    }

    /// The callback that is running returns, or the next one is called.
    mutating func step(_ world: World) {
        if isRunning {
            isRunning = false
            return
        }
        guard var turn = turn ?? nextTurn() else { return }
        let registration = turn.registration
        guard let one = callbacks[registration]?.queue.takeNext() else {
            self.turn = nil
            return
        }
        world.oracle.isCalled(registration)
        if let fault = callbacks[registration]?.promise.taken(one) {
            world.oracle.fail("the queue of registration \(registration) \(fault)")
        }
        turn.left -= 1
        self.turn = turn.left > 0 ? turn : nil
        if self.turn == nil, world.mutation != .forgetsTurn { ready.append(registration) }
    }

    /// Only what is queued now, so that the others get their turn.
    private mutating func nextTurn() -> Turn? {
        guard !ready.isEmpty else { return nil }
        let registration = ready.removeFirst()
        return Turn(registration: registration, left: max(1, callbacks[registration]?.queue.count ?? 0))
    }

    mutating func cancel(_ registration: Int, _ world: World) {
        if world.mutation == .callsQueued { return }
        callbacks[registration]?.queue.removeAll()
        callbacks[registration]?.promise.removeAll()
    }

    /// Nothing that was queued waits any more.
    func check(_ world: World) {
        for (registration, callback) in callbacks where callback.promise.count > 0 {
            world.oracle.fail("\(callback.promise.count) names wait for registration \(registration)")
        }
    }
}
