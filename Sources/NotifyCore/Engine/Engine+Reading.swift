// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

extension Engine {
    /// Serves both connections until the thread no longer leads, and then runs the callbacks that were left to it.
    func lead(as number: Int, of threads: EngineThreads) {
        var leads = true
        observing.sleep = threads.sleep
        // The thread that takes over may find messages that were read from the socket but not handled, which epoll(7)
        // can't know.
        var mayWait = false
        var lastBatch: Int64 = 0
        var pause = StreamPause()
        while leads, !threads.isStopping {
            let events = waitForEvents(threads, as: number, mayWait: mayWait)
            mayWait = true
            let batch = threads.beginBatch()
            if events.isAwake {
                threads.wakeDescriptor.clear()
                observing.run(registry.takeCommands(), on: self)
            }
            outbox.service(events.posting, on: events.postingConnection)
            observing.service(events.observing, on: self)

            let waiting = takeDelivery()
            let delivers = waiting != nil
            // What is queued was posted before what arrives now.
            if let waiting { leads = run(waiting, as: number, of: threads, leads: leads, givesUp: false) }
            var arrivals = 0
            var share = LeadersShare(from: batch)
            var isLate = false
            while leads, let arrival = observing.nextArrival(on: self) {
                arrivals += 1
                if delivers, arrivals > 1, !isLate { isLate = share.isUsedUp() }
                leads = deliver(arrival, as: number, of: threads, delivers: delivers && !isLate)
            }
            if delivers, isLate {
                // The callbacks take longer than reading may wait. From here on the follower delivers.
                threads.leaveDelivery()
            } else if delivers {
                leads = run(takeWork(orGiveUp: true), as: number, of: threads, leads: leads, givesUp: true)
            }
            let interval = batch - lastBatch
            if leads {
                threads.endBatch(interval: interval)
                let posted = counters.posted.load(ordering: .relaxed)
                pause.pauseIfNeeded(arrivals: arrivals, interval: interval, posted: posted)
            }
            lastBatch = batch
        }
        if leads { observing.close() }
    }

    private func waitForEvents(_ threads: EngineThreads, as number: Int, mayWait: Bool) -> LeaderSleep.Events {
        let observingRequest = observing.pollRequest
        let postingRequest = outbox.pollRequest
        threads.sleep.watchObserving(observingRequest)
        threads.sleep.watchPosting(postingRequest)
        let deadline = MonotonicTime.earlier(observingRequest.deadline, postingRequest.deadline)
        let plan = threads.sleep.plan(mayWait ? deadline?.millisecondsFromNow ?? -1 : 0)
        let events = threads.lend(number) { threads.sleep.sleep(plan) }
        threads.sleep.note(events)
        return events
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
struct PollRequest: Equatable {
    var descriptor: Int32 = -1
    var events: Int16 = 0
    var deadline: MonotonicTime?
    /// Which of a center's connections this is for: another one may have replaced it by the time the leader wakes up.
    var connection = 0
    /// Whether the descriptor may be replaced after the next event.
    var isProvisional = false

    var pollfd: Glibc.pollfd { Glibc.pollfd(fd: descriptor, events: events, revents: 0) }
}
