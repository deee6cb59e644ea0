// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import Synchronization

/// The wait itself: one thread that sleeps in poll(2) until a notification, a signal, a child, the reader of the output
/// or a timeout requires attention.
struct Waiter {
    private let settings: WaitSettings
    private let diagnostics: Diagnostics
    private let wakeup: WakeDescriptor
    private let signals: Signals
    private let children: Signals
    /// Readable when the process was continued after having been stopped.
    private let continuation: Signals
    private let inbox: Inbox
    private let center: NotifyCenter
    private let observation: NotifyCenter.Observation
    private let deadline: Int64?

    private var goal: Goal
    private var output: RecordOutput
    private var isPrinting: Bool
    private var runner: CommandRunner?
    private var hold: Hold?
    private var settling: Settling?
    /// When it is said that nothing has come, on the monotonic clock, if nothing comes until then.
    private var beat: Int64?
    /// What is being dealt with, and those of its names that are still to be printed.
    private var current: (burst: Burst, rest: ArraySlice<Burst.Entry>)?
    private var then: Child?
    /// The `--then` command and what it has started, once a signal has come that ends this.
    private var endingThen: EndingProcesses?
    /// How the `--then` command failed, once it has.
    private var thenFailure: Child.End?
    /// Whether all has come that it posted before that.
    private var hasHeardThen = false
    /// Until when it may still exit by itself, once the wait has reached its goal.
    private var thenGrace: Int64?
    private let readyFile: ReadyFile?
    /// The number of notifications that were dealt with.
    private var count = 0
    private var absence = BusAbsence()
    /// Until when the agent is not asked again, as it has not answered.
    private var agentPause: Int64 = 0
    /// Whether something may have been left in the inbox, for lack of time.
    private var isBehind = false
    /// The exit code, once known; commands and output may still be pending.
    private var outcome: ExitCode?

    /// Returns once the observer is live and that has been reported as requested.
    init(_ subject: Subject, _ settings: WaitSettings, _ diagnostics: Diagnostics) throws(CommandFailure) {
        self.settings = settings
        self.diagnostics = diagnostics
        goal = Goal(subject, settings)
        output = RecordOutput(settings)
        isPrinting = settings.printsNames
        runner = settings.command.map { CommandRunner($0, settings, diagnostics) }
        settling = settings.settle.map { Settling($0) }
        deadline = settings.timeout.map { Clock.monotonic + $0.inNanoseconds }
        StandardStreams.wait(until: deadline)
        wakeup = try .ofCommand()
        let inbox = Inbox(wakeup: wakeup)
        self.inbox = inbox
        center = NotifyCenter(bus: settings.common.notifyBus, waitsForBus: settings.retries) { inbox.put($0) }
        // A timeout of zero checks what is there, which requires a bus.
        let limit = settings.timeout == .zero ? Clock.monotonic + 2_000_000_000 : deadline
        if settings.retries {
            observation = try Waiter.observeWaiting(
                subject,
                in: center,
                inbox,
                wakeup,
                until: limit,
                printsNames: isPrinting,
                diagnostics
            )
        } else {
            observation = try Waiter.observe(subject, in: center, inbox, until: limit)
        }
        continuation = try Signals(only: [SIGCONT])
        diagnostics.detail("the observer is live")
        // A short wait has no time for that.
        let mayTry = deadline.map { $0 - Clock.monotonic > 5_000_000_000 } ?? true
        let obstacle =
            center.obstacleToHearing ?? (mayTry ? Echo.obstacle(center, settings.common.notifyBus) : nil)
        if let obstacle { diagnostics.notice(obstacle) }
        if settings.common.verbosity == .verbose {
            AgentReport(center, settings.common.notifyBus).lines(for: subject.names).forEach(diagnostics.error)
            let follower = Follower<LifecycleState>(change: { inbox.put($0) }, end: {})
            _ = try? center.lifecycle.follow(follower)
            if center.lifecycle.state != .foreground { inbox.put(center.lifecycle.state) }
        }
        hold = settings.holds ? Hold(subject.names, in: center, settings.common.notifyBus, diagnostics) : nil
        // Until now there was nothing to clean up.
        signals = try Signals()
        children = try Signals(only: [SIGCHLD])
        StandardStreams.wait(until: deadline, or: signals)
        readyFile = try Readiness.announce(settings, diagnostics)
        if let then = settings.then {
            self.then = try Self.start(then)
        }
        beat = settings.heartbeat.map { Clock.monotonic + $0.inNanoseconds }
    }

    private static func start(_ then: Argument) throws(CommandFailure) -> Child {
        switch Child.start([Argument(literal: "/bin/sh"), Argument(literal: "-c"), then]) {
        case .success(let child): return child
        case .failure(let error): throw CommandFailure("can't run /bin/sh: \(describe(errno: error.number))")
        }
    }

    mutating func run() -> Signals.Ending {
        while true {
            if let number = takeSignal() {
                end(by: number)
                return .signal(number)
            }
            takeChildren()
            while continuation.next() != nil { absence.hasContinued(at: Clock.monotonic) }
            takeChanges()
            takeArrivals()
            if hold != nil, runner?.isIdle != false, settling?.burst == nil, !inbox.hasArrival { hold?.end() }
            takeBeat()
            settleOutcome()
            if let outcome, !output.isPending, runner?.isIdle ?? true, !isWaitingForThen() {
                if outcome != .done, let number = thenSignal {
                    readyFile?.remove()
                    return .signal(number)
                }
                return .code(outcome == .done ? runner?.failure ?? .done : outcome)
            }
            sleep()
        }
    }

    /// Whether the `--then` command may exit by itself any moment: its post arrives here before its own reply from the
    /// bus, and exiting now could end the bus too, under dbus-run-session.
    private mutating func isWaitingForThen() -> Bool {
        guard then != nil, outcome == .done else { return false }
        let grace = thenGrace ?? Clock.monotonic + 100_000_000
        thenGrace = grace
        return Clock.monotonic < grace
    }

    /// The signal that ended the `--then` command, if its purpose is to end. A service manager sends it to both, and the
    /// end of the command may be seen first: then this ends by it too, which a shell reports as the same status.
    private var thenSignal: Int32? {
        guard case .killed(let number) = thenFailure, Signals.ending.contains(number) else { return nil }
        return number
    }

    // MARK: - Events

    /// Returns the number of a signal that ends this, once it has been forwarded.
    private mutating func takeSignal() -> Int32? {
        guard let signal = signals.next() else { return nil }
        runner?.end(by: signal.number)
        endingThen = then.map { EndingProcesses($0.pid) }
        // The `--then` command is in our process group.
        if !signal.isFromKernel { endingThen?.signal(signal.number) }
        return signal.number
    }

    /// Removes what was created, and waits for the commands that have been signalled, for 5 s or until the next signal.
    /// A command that still runs then is killed, and its end waited for.
    private mutating func end(by number: Int32) {
        readyFile?.remove()
        var deadline = Deadline(after: .nanoseconds(CommandRunner.patience))
        // A killed process may still be in the midst of something in the kernel, but not for ever.
        let last = Deadline(after: .nanoseconds(CommandRunner.patience + 1_000_000_000))
        while !(runner?.isIdle ?? true) || endingThen?.haveEnded() == false, !last.hasPassed {
            var sources = [signals, children].map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            sources += endingThen?.requests ?? []
            poll(&sources, nfds_t(sources.count), deadline.milliseconds)
            if signals.next() != nil || deadline.hasPassed {
                runner?.tick()
                endingThen?.signal(SIGKILL)
                deadline = Deadline(after: .milliseconds(50))
            }
            while children.next() != nil {}
            runner?.childHasEnded()
        }
    }

    private mutating func takeChildren() {
        hasHeardThen = inbox.hasEnded
        guard children.next() != nil else { return }
        runner?.childHasEnded()
        guard let end = then?.reap() else { return }
        then = nil
        if end == .exited(0) || outcome != nil { return }
        thenFailure = end
        // Posts that it made before it failed still count. If the bus does not answer, nothing more will come. The
        // thread waits because signals and the reader must not.
        let (center, inbox) = (center, inbox)
        let listen: @Sendable () -> Void = {
            try? center.barrier(timeout: .seconds(5))
            inbox.noteEnd()
        }
        do throws(NotifyBusError) { try EngineThread(name: "notify-wait", listen).detach() } catch { listen() }
    }

    private mutating func takeChanges() {
        for change in inbox.takeChanges() {
            report(change.kind == .disconnected ? absence.hasBegun(at: Clock.monotonic) : absence.hasEnded())
        }
        switch inbox.takeState() {
        case .background: diagnostics.detail("in the background: hears nothing until it is in the foreground again")
        case .suspended: diagnostics.detail("suspended: hears each name once when it is resumed")
        case .foreground: diagnostics.detail("in the foreground again")
        case nil: break
        }
        let bus = settings.common.notifyBus
        report(absence.look(at: Clock.monotonic) { bus.isDeserted })
        let refused = inbox.takeRefused()
        if refused > 0 {
            diagnostics.error("\(refused) notifications were lost: more than 65,536 names were queued")
        }
    }

    private mutating func report(_ report: BusAbsence.Report?) {
        switch report {
        case .away: diagnostics.notice("the bus went away; waiting for it to come back")
        case .back: diagnostics.notice("the bus is back")
        case .resumed: diagnostics.notice("resumed")
        case .ended where !settings.exitsWithBus:
            diagnostics.notice("nothing listens at the bus's address any more; still waiting (see --exit-with-bus)")
        case .ended:
            if isConcluded() { return }
            diagnostics.error("the bus has ended")
            giveUp(.unavailable)
        case nil: break
        }
    }

    /// Handles what has come, until there is a record to write.
    private mutating func takeArrivals() {
        let limit = Clock.monotonic + 100_000_000
        isBehind = false
        deal(until: limit)
        takeSettled(until: limit)
        // A name precedes the output of the command that runs for it, so it is written before the next one is taken.
        // Without a command many are written at once: a write for each would take longer than a post takes to arrive,
        // so equal ones in the queue would be coalesced.
        while outcome == nil, current == nil, runner == nil ? output.hasRoom : !output.isPending,
            let arrival = inbox.takeArrival()
        {
            if let heartbeat = settings.heartbeat { beat = arrival.moment + heartbeat.inNanoseconds }
            // One that came in time counts, even if a slow reader or another notification held it up.
            if let deadline, arrival.moment > deadline { return timeIsOver() }
            if settling != nil {
                // One that comes after the previous burst is over starts another.
                if let burst = settling?.take(at: arrival.moment) { deal(with: burst, until: limit) }
                settling?.add(arrival)
                takeSettled(until: limit)
            } else {
                deal(with: Burst(arrival), until: limit)
            }
            isBehind = isBehind || Clock.monotonic >= limit
            if isBehind { break }
        }
    }

    /// Says that nothing has come for so long. The next time is counted from when this one was due, so that none is
    /// left out; while the reader or this program is slow, several become one.
    private mutating func takeBeat() {
        guard let due = beat, let heartbeat = settings.heartbeat, outcome == nil, !isBehind, !output.isPending else {
            return
        }
        let now = Clock.monotonic
        guard now >= due, !inbox.hasArrival else { return }
        let length = heartbeat.inNanoseconds
        beat = due + (1 + (now - due) / length) * length
        if isPrinting { output.addHeartbeat(count: count) }
        if runner != nil { writeRecords() }
        runner?.beat(after: count)
    }

    private mutating func takeSettled(until limit: Int64) {
        guard outcome == nil, current == nil, !output.isPending else { return }
        if let burst = settling?.take(at: Clock.monotonic) { deal(with: burst, until: limit) }
    }

    /// Notifications that came in time count, settled or not.
    private mutating func dealWithRest(until limit: Int64 = .max) {
        deal(until: limit)
        if outcome == nil, current == nil, let burst = settling?.takeAll() { deal(with: burst, until: limit) }
    }

    private mutating func deal(with burst: Burst, until limit: Int64) {
        count += burst.count
        current = (burst, isPrinting ? burst.entries[...] : [])
        deal(until: limit)
    }

    /// Goes on with what is being dealt with. An agent may take its time for each state, and signals and the reader must
    /// not wait for all of them.
    private mutating func deal(until limit: Int64) {
        while let entry = current?.rest.popFirst() {
            let state = settings.format?.hasState == true ? state(of: entry.arrival.name) : nil
            output.add(entry.arrival, count: settling == nil ? count : entry.count, state: state)
            isBehind = Clock.monotonic >= limit
            if isBehind { return }
        }
        guard outcome == nil, let burst = current?.burst else { return }
        current = nil
        // The name before the output of the command that runs for it, unless that had to wait for the reader.
        if runner != nil { writeRecords() }
        if outcome != nil { return }
        let names = burst.entries.map(\.arrival.name)
        hold?.begin(names)
        runner?.notify(Run(names, last: burst.last.name, count: settling == nil ? count : burst.count))
        if goal.isReached(by: burst) { outcome = .done }
    }

    /// The current state of a name, from the agent; nil if there is no agent, or it does not answer.
    private mutating func state(of name: NotifyName) -> UInt64? {
        let now = Clock.monotonic
        // A notification that came in time still gets its state: an agent that is well takes milliseconds.
        let left = deadline.map { $0 + 100_000_000 - now } ?? .max
        if left <= 0 || now < agentPause { return nil }
        do throws(AgentError) {
            return try center.state(of: name, timeout: .nanoseconds(min(left, 1_000_000_000)))
        } catch {
            if case .unreachable(let error) = error, error.code == .timedOut {
                agentPause = Clock.monotonic + 5_000_000_000
            }
            return nil
        }
    }

    /// No notification ends the wait, but the timeout or the failure of `--then` may.
    private mutating func settleOutcome() {
        let isOver = deadline.map { Clock.monotonic >= $0 } ?? false
        if isOver, outcome == .done, output.isPending, !writeRecord() {
            diagnostics.notice(CommandFailure.timedOut(after: count, "; standard output is not being read").message)
            return giveUp(.timedOut)
        }
        if outcome != nil || isBehind { return }
        let isLast = thenFailure != nil && !output.isPending && (isOver || hasHeardThen)
        if isLast { dealWithRest(until: Clock.monotonic + 100_000_000) }
        if outcome != nil || isBehind { return }
        if isLast, let end = thenFailure, !output.isPending {
            diagnostics.error("the --then command \(end.text)")
            outcome = end.status
        } else if isOver, !(output.isPending && writeRecord()) {
            timeIsOver()
        }
    }

    private mutating func timeIsOver() {
        if isConcluded() { return }
        let missing = goal.missing.map { "; missing: " + $0 } ?? ""
        diagnostics.notice(CommandFailure.timedOut(after: count, missing).message)
        giveUp(.timedOut)
    }

    /// Handles what came before the wait is given up.
    ///
    /// - Returns: whether that has ended it.
    private mutating func isConcluded() -> Bool {
        if outcome == nil { dealWithRest() }
        writeRecords()
        return outcome != nil
    }

    private mutating func giveUp(_ code: ExitCode) {
        outcome = code
        current = nil
        // Its reader has stopped reading, and this must end.
        output.drop()
    }

    // MARK: - Sleeping

    private mutating func sleep() {
        var descriptors = [
            pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
            // Without events it still reports that the reader has gone.
            pollfd(fd: isPrinting ? STDOUT_FILENO : -1, events: output.isPending ? Int16(POLLOUT) : 0, revents: 0),
            pollfd(fd: children.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: continuation.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&descriptors, nfds_t(descriptors.count), timeout()) >= 0 else { return }
        if descriptors[0].revents != 0 { wakeup.clear() }
        if let deadline = runner?.deadline, Clock.monotonic >= deadline { runner?.tick() }
        let events = Int32(descriptors[2].revents)
        if events & POLLERR != 0 || events & (POLLHUP | POLLOUT) == POLLHUP {
            readerIsGone()
        } else if events != 0, output.isPending, !writeRecord() {
            // A terminal with room for one byte is writable, but takes no line feed.
            _ = StandardStreams.isDue(within: 10)
        }
    }

    /// Writes what the reader takes now.
    private mutating func writeRecords() {
        while outcome == nil, output.isPending, writeRecord() {}
    }

    /// - Returns: false if its reader has stopped reading.
    @discardableResult
    private mutating func writeRecord() -> Bool {
        switch output.write() {
        case .written: break
        case .gaveUp: return false
        case .readerGone: readerIsGone()
        case .failed(let number):
            end(diagnostics.fail(CommandFailure(cannotWriteOutput: number)))
        }
        return true
    }

    /// Milliseconds until the next deadline, rounded up so that it has passed by then; -1 for never.
    private func timeout() -> Int32 {
        if isBehind { return 0 }
        var next = runner?.deadline
        if outcome == nil || (outcome == .done && output.isPending), let deadline {
            next = min(next ?? Int64.max, deadline)
        }
        if outcome == nil, !output.isPending, let end = settling?.deadline { next = min(next ?? Int64.max, end) }
        if outcome == nil, !output.isPending, let beat { next = min(next ?? Int64.max, beat) }
        if outcome == nil, let moment = absence.deadline { next = min(next ?? Int64.max, moment) }
        if outcome != nil, then != nil, let thenGrace { next = min(next ?? Int64.max, thenGrace) }
        guard let next else { return -1 }
        let milliseconds = (max(0, next - Clock.monotonic) + 999_999) / 1_000_000
        return Int32(clamping: milliseconds)
    }

    private mutating func readerIsGone() {
        end(outcome ?? .done)
    }

    /// Ends without writing or starting anything more.
    private mutating func end(_ code: ExitCode) {
        outcome = code
        current = nil
        output.drop()
        isPrinting = false
        runner?.dropWaiting()
    }
}

extension Waiter {
    /// Returns once the bus has confirmed the observer.
    static func observe(
        _ subject: Subject,
        in center: NotifyCenter,
        _ inbox: Inbox,
        until deadline: Int64?
    ) throws(CommandFailure) -> NotifyCenter.Observation {
        let start = Clock.monotonic
        let timeLimit: Int64 = 25_000_000_000
        let left = deadline.map { min(max(0, $0 - start), timeLimit) } ?? timeLimit
        do throws(NotifyBusError) {
            return try center.addObserver(matching: subject.ofCenter, timeout: .nanoseconds(left)) { inbox.put($0) }
        } catch {
            guard let deadline, Clock.monotonic >= deadline, error.code == .timedOut else {
                throw CommandFailure(lateBus: error)
            }
            throw .lateBus(since: start, center)
        }
    }

    /// Returns once the bus has confirmed the observer, whenever it becomes available.
    static func observeWaiting(
        _ subject: Subject,
        in center: NotifyCenter,
        _ inbox: Inbox,
        _ wakeup: WakeDescriptor,
        until deadline: Int64?,
        printsNames: Bool,
        _ diagnostics: Diagnostics
    ) throws(CommandFailure) -> NotifyCenter.Observation {
        let start = Clock.monotonic
        let outcome = Mutex<Result<Void, NotifyBusError>?>(nil)
        let observation: NotifyCenter.Observation
        do throws(NotifyBusError) {
            observation = try center.startObserving(subject.ofCenter, waitsForBus: true) {
                inbox.put($0)
            } whenLive: { result in
                outcome.withLock { $0 = result }
                wakeup.signal()
            }
        } catch {
            throw CommandFailure(lateBus: error)
        }
        var isAway = false
        // A bus that does not answer is there.
        var isUnreachable = false
        while true {
            wakeup.clear()
            if let result = outcome.withLock({ $0 }) {
                if case .failure(let error) = result { throw CommandFailure(lateBus: error) }
                // That it is available need not be reported.
                if isAway { inbox.ignoreReturn() }
                return observation
            }
            for change in inbox.takeChanges() {
                guard let error = change.error else { continue }
                isUnreachable = error.code != .timedOut
                if !isAway { diagnostics.notice("\(error.description) Waiting for the bus.") }
                isAway = true
            }
            let now = Clock.monotonic
            if let deadline, now >= deadline {
                throw isUnreachable ? .timedOut(after: 0, "; there is no bus") : .lateBus(since: start, center)
            }
            var sources = [
                pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0),
                // Without events it still reports that the reader has gone.
                pollfd(fd: printsNames ? STDOUT_FILENO : -1, events: 0, revents: 0),
            ]
            poll(&sources, 2, deadline.map { Int32(clamping: ($0 - now + 999_999) / 1_000_000) } ?? -1)
            if Int32(sources[1].revents) & (POLLERR | POLLHUP) != 0 { throw .readerGone }
        }
    }
}
