// SPDX-License-Identifier: Apache-2.0

package import Glibc
import Synchronization

extension Engine {
    /// Serves both connections until the thread no longer leads, and then runs the callbacks that were left to it.
    func lead(as number: Int, of threads: EngineThreads) {
        var leads = true
        // The thread that takes over may find messages that were read from the socket but not handled, which poll(2)
        // can't know.
        var mayWait = false
        var lastBatch: Int64 = 0
        var pause = StreamPause()
        while leads, !threads.isStopping {
            let events = waitForEvents(threads.wakeDescriptor, mayWait: mayWait)
            mayWait = true
            let batch = threads.beginBatch()
            observing.batchStart = MonotonicTime(nanoseconds: batch)
            if events.isAwake {
                threads.wakeDescriptor.clear()
                observing.run(registry.takeCommands())
            }
            outbox.service(events.posting, on: events.postingConnection)
            observing.service(events.observing)

            let waiting = takeDelivery()
            let delivers = waiting != nil
            // What is queued was posted before what arrives now.
            if let waiting { leads = run(waiting, as: number, of: threads, leads: leads, givesUp: false) }
            var arrivals = 0
            while leads, let arrival = observing.nextArrival() {
                arrivals += 1
                leads = deliver(arrival, as: number, of: threads, delivers: delivers)
            }
            if delivers { leads = run(takeWork(orGiveUp: true), as: number, of: threads, leads: leads, givesUp: true) }
            if leads {
                threads.endBatch()
                let posted = counters.posted.load(ordering: .relaxed)
                pause.pauseIfNeeded(arrivals: arrivals, interval: batch - lastBatch, posted: posted)
            }
            lastBatch = batch
        }
        if leads { observing.close() }
    }

    private struct Events {
        var isAwake: Bool
        var observing: Int16
        var posting: Int16
        var postingConnection: Int
    }

    /// Sleeps until a socket is ready, a deadline has passed, or another thread wakes the leader.
    ///
    /// A posting thread may close its socket meanwhile: poll(2) keeps the one that it was called with.
    private func waitForEvents(_ wakeDescriptor: WakeDescriptor, mayWait: Bool) -> Events {
        let reading = observing.serviceRequest
        let posting = outbox.pollRequest
        let deadline = MonotonicTime.earlier(reading.deadline, posting.deadline)
        var requests = (
            pollfd(fd: wakeDescriptor.descriptor, events: Int16(POLLIN), revents: 0),
            reading.pollfd,
            posting.pollfd
        )
        withUnsafeMutableBytes(of: &requests) { bytes in
            _ = poll(
                bytes.assumingMemoryBound(to: pollfd.self).baseAddress,
                3,
                mayWait ? deadline?.millisecondsFromNow ?? -1 : 0
            )
        }
        return Events(
            isAwake: requests.0.revents != 0,
            observing: requests.1.revents,
            posting: requests.2.revents,
            postingConnection: posting.connection
        )
    }

    /// - Returns: whether the thread still leads.
    @inline(__always)
    private func deliver(_ arrival: Arrival, as number: Int, of threads: EngineThreads, delivers: Bool) -> Bool {
        guard delivers else {
            for observer in arrival.audience.observers { observer.offer(arrival.name) }
            return true
        }
        // The queues of clients come first: once a callback runs, the follower may continue reading, and what it reads
        // must not overtake this post.
        if arrival.audience.clientCount > 0 {
            for observer in arrival.audience.observers where observer.isClient { observer.offer(arrival.name) }
        }
        guard arrival.audience.hasCallbacks else { return true }
        return threads.runWhileLeading(number) {
            for observer in arrival.audience.observers where !observer.isClient { observer.call(arrival.name) }
        }
    }

    /// Runs callbacks until none is left, then gives up delivery if asked to.
    ///
    /// - Returns: whether the thread still leads.
    private func run(
        _ first: [Work],
        as number: Int,
        of threads: EngineThreads,
        leads: Bool,
        givesUp: Bool
    ) -> Bool {
        var leads = leads
        var work = first
        while !work.isEmpty {
            if leads {
                leads = threads.runWhileLeading(number) { work.forEach(run) }
            } else {
                work.forEach(run)
            }
            work = takeWork(orGiveUp: givesUp)
        }
        return leads
    }
}

/// A post that has arrived, and its observers.
struct Arrival {
    let name: NotifyName
    let audience: Audience
}

/// The events for which a connection is to be woken.
package struct PollRequest {
    package var descriptor: Int32 = -1
    var events: Int16 = 0
    package var deadline: MonotonicTime?
    /// Which of a center's connections this is for: another one may have replaced it by the time the leader wakes up.
    var connection = 0

    package var pollfd: Glibc.pollfd { Glibc.pollfd(fd: descriptor, events: events, revents: 0) }
}

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

/// Lets a stream of posts accumulate a little, so that the bus need not wake the leader for each of them.
///
/// A busy bus would otherwise spend most of its time on that: with ten observers, dbus-daemon delivers twice as many
/// posts this way.
struct StreamPause {
    /// Batches that follow each other within this many nanoseconds form a stream.
    private static let interval: Int64 = 120_000
    /// With this many posts at once, the cost of waking up per post is small.
    private static let fullBatch = 4
    /// In nanoseconds. The kernel adds 50 µs, so a pause is below 0.1 ms. It is bounded, whereas sched_yield(2) may take
    /// until the bus has queued too much for us.
    private static let length = 40_000

    private var lastPosted = 0

    /// Pauses if a stream arrives.
    ///
    /// - Parameters:
    ///   - arrivals: how many posts the latest batch had.
    ///   - interval: how long after the batch before it arrived, in nanoseconds.
    ///   - posted: how many posts this center has made. One that makes some may be answering, and somebody waiting for
    ///     the answer.
    mutating func pauseIfNeeded(arrivals: Int, interval: Int64, posted: Int) {
        defer { lastPosted = posted }
        guard 1..<StreamPause.fullBatch ~= arrivals, interval < StreamPause.interval, posted == lastPosted else {
            return
        }
        var time = timespec(tv_sec: 0, tv_nsec: StreamPause.length)
        nanosleep(&time, nil)
    }
}
