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
