// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The two threads of a center. At any moment one leads and the other follows (the leader/followers pattern).
///
/// The leader reads and also runs callbacks, so that a post is delivered without a second wake-up. The bus must be read
/// whatever the callbacks do: if those for what has arrived take longer than `FollowerAlarm.timeLimit`, the follower takes
/// the lead. The thread in the callback follows once it has run the callbacks that were left to it.
final class EngineThreads: Sendable {
    /// What a thread is doing. Only the thread itself changes it, except that the follower may turn `callback` into
    /// `replaced`, by which it takes the lead, and so may who starts other threads with `callback` and `sleeping`.
    private enum Phase {
        static let following: UInt8 = 0
        static let leading: UInt8 = 1
        static let callback: UInt8 = 2
        static let replaced: UInt8 = 3
        /// Leading, but touching nothing.
        static let sleeping: UInt8 = 4
    }

    private final class Member: Sendable {
        let phase: Atomic<UInt8>
        init(_ phase: UInt8) { self.phase = Atomic(phase) }
    }

    let wakeDescriptor: WakeDescriptor
    private let alarm: FollowerAlarm
    private let members = (Member(Phase.leading), Member(Phase.following))
    private let threads = Monitor<[EngineThread]>([])
    private let stopping = Atomic(false)
    /// Whether a callback of the leader is about to wait for something that only reading can bring.
    private let mustTakeLead = Atomic(false)
    /// When the leader started to work on the latest arrivals, in nanoseconds of the monotonic clock.
    private let batchStart = Atomic<Int64>(0)

    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    init() throws(NotifyBusError) {
        wakeDescriptor = try WakeDescriptor()
        alarm = try FollowerAlarm()
    }

    /// Starts both threads. The first one leads.
    ///
    /// - Parameter lead: reads until the thread with this number no longer leads and has no callbacks left to run.
    /// - Parameter isUnreachable: called by a thread that nothing can wake any more, and that ends.
    func start(
        lead: @escaping @Sendable (Int) -> Void,
        isUnreachable: @escaping @Sendable () -> Void
    ) throws(NotifyBusError) {
        let run: @Sendable (Int) -> Void = { [self] number in
            if number == 0 { lead(number) }
            while follow(number) { lead(number) }
            if !isStopping { isUnreachable() }
        }
        // The lock makes a thread that looks itself up wait until the list is complete.
        try threads.withLock { threads throws(NotifyBusError) in
            for number in 0...1 {
                do throws(NotifyBusError) {
                    threads.append(try EngineThread { run(number) })
                } catch {
                    stop(threads)
                    throw error
                }
            }
        }
    }

    /// Stops the threads, and waits for them unless the caller is one of them.
    func stop(waits: Bool) {
        stop(
            threads.withLock { threads in
                defer { threads = [] }
                return threads
            },
            waits: waits
        )
    }

    // MARK: - A program that has closed what wakes the threads

    /// Whether the program has closed none of the descriptors that wake the threads.
    var haveDescriptors: Bool { wakeDescriptor.isOurs && alarm.isOurs }

    /// Lets the leader sleep: from now on others may be started in its place, until `endSleep`.
    func beginSleep(_ number: Int) {
        member(number).phase.store(Phase.sleeping, ordering: .sequentiallyConsistent)
    }

    /// - Returns: whether the thread still leads. If not, it must not touch anything that belongs to the leader.
    func endSleep(_ number: Int) -> Bool {
        member(number).phase.compareExchange(
            expected: Phase.sleeping,
            desired: Phase.leading,
            ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// Takes the lead from these threads for good: nothing can wake them any more.
    ///
    /// - Returns: false if the leader is at work. It looks at the descriptors before it sleeps.
    func takeLead() -> Bool {
        for member in [members.0, members.1] {
            for phase in [Phase.sleeping, Phase.callback] {
                let isTaken = member.phase.compareExchange(
                    expected: phase,
                    desired: Phase.replaced,
                    ordering: .sequentiallyConsistent
                ).exchanged
                if isTaken { return true }
            }
        }
        return false
    }

    private func stop(_ threads: [EngineThread], waits: Bool = true) {
        stopping.store(true, ordering: .sequentiallyConsistent)
        wakeDescriptor.signal()
        alarm.ring()
        for thread in threads { if waits { thread.finish() } else { thread.detach() } }
    }

    /// Must be called before the caller waits for something that reading brings: if the caller is a callback of the
    /// leader, the follower takes the lead.
    func prepareToWait() {
        let current = threads.withLock { threads in threads.firstIndex { $0.isCurrent } }
        guard let current, member(current).phase.load(ordering: .relaxed) == Phase.callback else { return }
        mustTakeLead.store(true, ordering: .sequentiallyConsistent)
        alarm.ring()
    }

    /// Notes that the leader starts to work on what has arrived, and returns the time.
    func beginBatch() -> Int64 {
        let now = MonotonicTime.now.nanoseconds
        batchStart.store(now, ordering: .relaxed)
        return now
    }

    /// Notes that the leader has finished the batch.
    @inline(__always)
    func endBatch() {
        // The call that stops the threads may have rung just before the alarm was turned off.
        if alarm.stop(), stopping.load(ordering: .sequentiallyConsistent) { alarm.ring() }
    }

    /// Runs a callback on the leader.
    ///
    /// - Returns: whether the thread still leads. If not, it must not touch anything that belongs to the leader.
    @inline(__always)
    func runWhileLeading(_ number: Int, _ callback: () -> Void) -> Bool {
        let phase = member(number)
        phase.phase.store(Phase.callback, ordering: .sequentiallyConsistent)
        // In this order, so that either the follower, which checks the phase after the alarm has rung, sees the callback,
        // or the alarm is seen as not set.
        alarm.setUnlessSet()
        callback()
        return phase.phase.compareExchange(
            expected: Phase.callback,
            desired: Phase.leading,
            ordering: .acquiringAndReleasing
        ).exchanged
    }

    // MARK: - Following

    private func member(_ number: Int) -> Member {
        number == 0 ? members.0 : members.1
    }

    /// Sleeps until it is this thread's turn to lead, helping the leader in the meantime.
    ///
    /// - Returns: false if the threads are to exit, or can't be woken any more.
    private func follow(_ number: Int) -> Bool {
        let other = member(1 - number)
        member(number).phase.store(Phase.following, ordering: .sequentiallyConsistent)
        // The leader may have started a callback, and set the alarm, before this thread was ready to be woken.
        while !isStopping {
            guard alarm.sleep() else { return false }
            guard other.phase.load(ordering: .sequentiallyConsistent) == Phase.callback else { continue }
            let elapsed = MonotonicTime.now.nanoseconds - batchStart.load(ordering: .relaxed)
            guard elapsed >= FollowerAlarm.timeLimit || mustTakeLead.load(ordering: .sequentiallyConsistent) else {
                alarm.set(after: FollowerAlarm.timeLimit - elapsed)
                continue
            }
            mustTakeLead.store(false, ordering: .sequentiallyConsistent)
            let takesLead = other.phase.compareExchange(
                expected: Phase.callback,
                desired: Phase.replaced,
                ordering: .acquiringAndReleasing
            ).exchanged
            if takesLead {
                member(number).phase.store(Phase.leading, ordering: .sequentiallyConsistent)
                return true
            }
        }
        return false
    }
}

/// Wakes the follower: at once, or when the leader's callbacks take too long.
struct FollowerAlarm: ~Copyable {
    /// How long the callbacks for what has arrived may keep the leader from reading, in nanoseconds.
    static let timeLimit: Int64 = 5_000_000

    private let timer: TimerDescriptor
    /// Whether it will ring. It may ring although this is false, but never the other way round.
    private let isSet = Atomic(false)

    init() throws(NotifyBusError) {
        timer = try TimerDescriptor()
    }

    /// Lets the alarm ring if the leader's callbacks, the first of which begins now, take too long.
    @inline(__always)
    func setUnlessSet() {
        if !isSet.load(ordering: .sequentiallyConsistent) { set(after: FollowerAlarm.timeLimit) }
    }

    /// Lets the alarm ring after this many nanoseconds.
    func set(after delay: Int64) {
        isSet.store(true, ordering: .sequentiallyConsistent)
        timer.fire(afterNanoseconds: delay)
    }

    /// Lets the alarm ring now.
    func ring() { set(after: 1) }

    /// Turns the alarm off.
    ///
    /// - Returns: whether it was set.
    @inline(__always)
    func stop() -> Bool {
        guard isSet.load(ordering: .relaxed) else { return false }
        // In this order: the follower may be setting it meanwhile, and does so in the reverse order.
        timer.stop()
        isSet.store(false, ordering: .sequentiallyConsistent)
        return true
    }

    /// Whether the program has not closed it.
    var isOurs: Bool { timer.isOurs }

    /// Sleeps until the alarm rings.
    ///
    /// - Returns: false if it can't any more.
    func sleep() -> Bool {
        let isOurs = timer.sleep()
        isSet.store(false, ordering: .sequentiallyConsistent)
        return isOurs
    }
}

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
            guard let events = waitForEvents(as: number, of: threads, mayWait: mayWait) else { return }
            mayWait = true
            let batch = threads.beginBatch()
            if events.isAwake {
                threads.wakeDescriptor.clear()
                observing.run(registry.takeCommands())
            }
            outbox.service(events.posting, on: events.postingConnection)
            if outbox.hasNews.load(ordering: .relaxed) { reportPosting() }
            observing.link.service(events.observing)

            let waiting = takeDelivery()
            let delivers = waiting != nil
            // Queued posts precede those that arrive now.
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
        if leads { observing.close(leaving: registry.endCommands()) }
    }

    private func reportPosting() {
        outbox.hasNews.store(false, ordering: .relaxed)
        guard let change = outbox.present, let onPostingChange else { return }
        enqueue { onPostingChange(change) }
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
    ///
    /// - Returns: nil if the thread does not lead any more.
    private func waitForEvents(as number: Int, of threads: EngineThreads, mayWait: Bool) -> Events? {
        let reading = observing.link.serviceRequest
        let posting = outbox.pollRequest
        let deadline = MonotonicTime.earlier(reading.deadline, posting.deadline)
        var requests = (
            pollfd(fd: threads.wakeDescriptor.descriptor, events: Int16(POLLIN), revents: 0),
            reading.pollfd,
            posting.pollfd
        )
        threads.beginSleep(number)
        // In this order, so that either this sees that they are gone, or who wakes this sees it asleep.
        guard threads.haveDescriptors else {
            replace(threads)
            return nil
        }
        withUnsafeMutableBytes(of: &requests) { bytes in
            _ = poll(
                bytes.assumingMemoryBound(to: pollfd.self).baseAddress,
                3,
                mayWait ? deadline?.millisecondsFromNow ?? -1 : 0
            )
        }
        guard threads.endSleep(number) else { return nil }
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
        // The queues of clients come first: once a callback runs, the follower may continue reading, and posts that it
        // reads must not overtake this one.
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
    ///   - posted: how many posts this center has made. One that makes some may be answering, and a program waiting for
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
