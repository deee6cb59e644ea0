// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// A thread for deferred work, which exists only while there is some: tokens that found a pipe full, monitored files,
/// and names without registrations for a second.
final class DeferredWork: Sendable {
    private struct State {
        var isRunning = false
        var pipes: [TokenPipe] = []
        var files: TokenFiles?
        /// When to look for idle names, and how.
        var sweep: Sweep?
        /// Counts the threads. An earlier one that nothing could wake does no more work.
        var thread = 0
        /// Wakes the thread; nil while there is none.
        var wakeDescriptor: WakeDescriptor?
    }

    private struct Sweep {
        let time: MonotonicTime
        let names: @Sendable () -> MonotonicTime?
    }

    private let state = Monitor(State())

    /// Whether there is no work, and none under way.
    var isAtRest: Bool { state.withLock { !$0.isRunning } }

    /// Writes pending tokens to a pipe once there is room.
    func watch(_ pipe: TokenPipe) {
        begin { state in
            if !state.pipes.contains(where: { $0 === pipe }) { state.pipes.append(pipe) }
        }
    }

    /// Calls `names` at this time, and again at the time that it returns. Only one such call is scheduled.
    func sweep(at time: MonotonicTime, _ names: @escaping @Sendable () -> MonotonicTime?) {
        begin { state in
            if state.sweep == nil { state.sweep = Sweep(time: time, names: names) }
        }
    }

    /// Calls `changed` for each change of a token's file, on this thread.
    ///
    /// - Throws: `invalidFile` if the file can't be watched, `failed` if there is no thread to do it.
    func monitor(_ token: Int32, path: String, changed: @escaping @Sendable () -> Void) throws(NotifyStatus) {
        var failure: NotifyStatus?
        let isRunning = begin { state in
            guard let files = state.files ?? (try? TokenFiles()) else { return failure = .failed }
            if files.add(token, path, changed) { state.files = files } else { failure = .invalidFile }
        }
        if let failure { throw failure }
        guard isRunning else {
            stopMonitoring(token)
            throw .failed
        }
    }

    func stopMonitoring(_ token: Int32) {
        state.withLock { state in
            state.files?.remove(token)
            if state.files?.isEmpty == true { state.files = nil }
            DeferredWork.wake(state)
        }
    }

    /// Changes the pending work, and makes sure that there is a thread to do it.
    ///
    /// - Returns: whether there is one.
    @discardableResult
    private func begin(_ change: (inout State) -> Void) -> Bool {
        state.withLock { state in
            change(&state)
            if state.isRunning, DeferredWork.wake(state) { return true }
            state.isRunning = false
            guard DeferredWork.hasWork(state) else { return false }
            // Without this nothing could wake the thread; the next change tries again.
            guard let wakeDescriptor = try? WakeDescriptor() else { return false }
            // Without a thread, full pipes fall behind and idle names stay registered; files are refused.
            do throws(NotifyBusError) {
                let number = state.thread + 1
                try EngineThread { self.run(number) }.detach()
                state.thread = number
                state.isRunning = true
                state.wakeDescriptor = wakeDescriptor
                return true
            } catch {
                return false
            }
        }
    }

    private static func hasWork(_ state: State) -> Bool {
        !state.pipes.isEmpty || state.files != nil || state.sweep != nil
    }

    /// - Returns: false if the program has closed what wakes the thread.
    @discardableResult
    private static func wake(_ state: State) -> Bool {
        state.wakeDescriptor?.signal() ?? false
    }

    /// Does on this thread what a full pipe has a thread do, so that the objects needed for it exist.
    ///
    /// - Parameter body: posts for the pipe.
    func rehearse(_ pipe: TokenPipe, _ body: () -> Void) {
        guard let wakeDescriptor = try? WakeDescriptor() else { return }
        // Nothing else is started while one seems to run.
        state.withLock { state in (state.isRunning, state.wakeDescriptor) = (true, wakeDescriptor) }
        pipe.fill()
        body()
        sweep(at: .now) {
            pipe.drain()
            return nil
        }
        run(0)
    }

    private func run(_ number: Int) {
        while let plan = nextPlan(of: number) {
            var requests = plan.requests
            poll(&requests, nfds_t(requests.count), plan.deadline?.millisecondsFromNow ?? -1)
            if requests[0].revents != 0 { plan.wakeDescriptor?.clear() }
            if requests.contains(where: { $0.events == Int16(POLLPRI) && $0.revents != 0 }) {
                plan.files?.mountsHaveChanged()
            }
            plan.files?.readChanges()
            let due = state.withLock { state in
                guard state.thread == number, let sweep = state.sweep, sweep.time <= .now else { return Sweep?.none }
                state.sweep = nil
                return sweep
            }
            if let due, let next = due.names() { sweep(at: next, due.names) }
        }
    }

    private struct Plan {
        let wakeDescriptor: WakeDescriptor?
        var requests: [pollfd]
        var deadline: MonotonicTime?
        var files: TokenFiles?
    }

    /// Writes to pipes while there is room, and determines what to wait for.
    ///
    /// - Returns: nil if there is no more work, in which case the thread exits.
    private func nextPlan(of number: Int) -> Plan? {
        state.withLock { state in
            guard state.thread == number else { return nil }
            // The program has closed them.
            if state.wakeDescriptor?.isOurs == false { state.wakeDescriptor = try? WakeDescriptor() }
            if state.files?.isOurs == false { state.files = nil }
            var requests = [pollfd(fd: state.wakeDescriptor?.descriptor ?? -1, events: Int16(POLLIN), revents: 0)]
            state.pipes.removeAll { pipe in
                guard let descriptor = pipe.flush() else { return true }
                requests.append(pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0))
                return false
            }
            guard DeferredWork.hasWork(state) else {
                state.isRunning = false
                state.wakeDescriptor = nil
                return nil
            }
            if let files = state.files {
                requests.append(pollfd(fd: files.descriptor, events: Int16(POLLIN), revents: 0))
                if let mounts = files.mountDescriptor {
                    requests.append(pollfd(fd: mounts, events: Int16(POLLPRI), revents: 0))
                }
            }
            let deadline = MonotonicTime.earlier(state.sweep?.time, state.files?.deadline)
            return Plan(
                wakeDescriptor: state.wakeDescriptor,
                requests: requests,
                deadline: deadline,
                files: state.files
            )
        }
    }
}

/// The files that tokens monitor.
private final class TokenFiles: Sendable {
    private struct State {
        var monitors: FileMonitors
        var changed: [Int: @Sendable () -> Void] = [:]
    }

    let descriptor: Int32
    let mountDescriptor: Int32?
    private let state: Monitor<State>

    init() throws(NotifyBusError) {
        let monitors = try FileMonitors()
        (descriptor, mountDescriptor) = (monitors.descriptor, monitors.mountDescriptor)
        state = Monitor(State(monitors: monitors))
    }

    var isEmpty: Bool { state.withLock { $0.monitors.isEmpty } }

    var isOurs: Bool { state.withLock { $0.monitors.isOurs } }

    var deadline: MonotonicTime? { state.withLock { $0.monitors.deadline } }

    /// - Returns: false if the file can't be watched.
    func add(_ token: Int32, _ path: String, _ changed: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.monitors.add(Int(token), path: path) == nil else {
                state.monitors.remove(Int(token))
                return false
            }
            state.changed[Int(token)] = changed
            return true
        }
    }

    func remove(_ token: Int32) {
        state.withLock { state in
            state.monitors.remove(Int(token))
            state.changed[Int(token)] = nil
        }
    }

    func mountsHaveChanged() { state.withLock { $0.monitors.mountsHaveChanged() } }

    func readChanges() {
        let changed = state.withLock { state in
            state.monitors.takeChanges().compactMap { change in
                if case .changed(let token) = change { state.changed[token] } else { nil }
            }
        }
        for call in changed { call() }
    }
}
