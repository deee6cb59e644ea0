// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Something outside that the agent watches: a file of the kernel, a service, a desktop.
///
/// It is made when it is first wanted, and released when it has not been wanted for a while. Meanwhile it lives on its
/// driver's loop, where it must not block. Nothing outside can end it: it says why it is not live, or fails with a
/// reason, and its driver begins it again after a while.
protocol Source: AnyObject {
    /// The names that are wanted of it: before `begin`, and whenever they change.
    func want(_ names: Set<NotifyName>)
    /// A process has started to observe, or an observing one has moved to another cgroup. May come before `begin`.
    func observerHasCome(_ process: Newcomer.ProcessFacts)
    func observerHasGone(_ process: ProcessID)
    /// Finds out how things are, reports that, and follows their changes.
    func begin(on driver: SourceDriver) throws(SourceFault)
    /// Releases everything that `begin` has acquired. `begin` may follow.
    func end()
}

extension Source {
    func want(_ names: Set<NotifyName>) {}
    func observerHasCome(_ process: Newcomer.ProcessFacts) {}
    func observerHasGone(_ process: ProcessID) {}
}

/// Why a source can't go on.
struct SourceFault: Error {
    let reason: String
    /// Whether that may change later.
    let isPassing: Bool

    init(_ reason: String, isPassing: Bool = true) {
        self.reason = reason
        self.isPassing = isPassing
    }

    /// Runs what throws for other reasons than a source's.
    static func rethrowing<Value>(_ body: () throws(NotifyBusError) -> Value) throws(SourceFault) -> Value {
        do throws(NotifyBusError) {
            return try body()
        } catch {
            throw SourceFault(error.description)
        }
    }

    /// The other side has not answered in time.
    static func silence(_ title: String, _ question: String, _ limit: Int64) -> SourceFault {
        SourceFault("\(title) has not answered the question \(question) within \(limit.asSeconds)")
    }

    /// A call has failed just now.
    static func system(_ what: String) -> SourceFault { SourceFault("\(what): \(describe(errno: errno))") }
}

/// Starts a source, passes on what it reports, and starts it again after a failure.
final class SourceDriver: LoopTenant {
    let loop: EventLoop
    let source: any Source
    private let deliver: (SourceReport) -> Void
    private let retry: Retry
    private var isBegun = false
    private var isEnded = false

    /// - Parameter deliver: called with what the source reports, until `end`.
    init(_ source: any Source, on loop: EventLoop, _ deliver: @escaping (SourceReport) -> Void) {
        (self.source, self.loop, self.deliver) = (source, loop, deliver)
        retry = Retry(on: loop)
    }

    // MARK: - Its life

    func begin() {
        guard !isEnded, !isBegun else { return }
        isBegun = true
        do throws(SourceFault) {
            try source.begin(on: self)
        } catch {
            fail(error)
        }
    }

    /// The source can't go on.
    func fail(_ fault: SourceFault) {
        guard isBegun else { return }
        report(.off(fault.reason))
        isBegun = false
        source.end()
        if fault.isPassing, !isEnded { retry.schedule { [weak self] in self?.begin() } }
    }

    func end() {
        isEnded = true
        retry.cancel()
        guard isBegun else { return }
        isBegun = false
        source.end()
    }

    func loopHasEnded() { end() }

    // MARK: - What the source reports

    func report(_ report: SourceReport) {
        guard isBegun else { return }
        // If it fails now, it is begun again soon.
        if case .condition(.live) = report { retry.reset() }
        deliver(report)
    }

    /// A window has the focus, or none has.
    ///
    /// - Parameter count: how many times it was somewhere else or there, as far as was told.
    func reportFocus(_ window: DesktopWindow?, count: UInt64 = 1) {
        isLive()
        let processes = window.map { window in
            [FocusedProcess(pid: window.pid, window: window.application, isFullscreen: window.isFullscreen)]
        }
        report(.fact(.focus(processes ?? []), count: count))
    }

    /// It has reported how things are, and will report what changes.
    func isLive() { report(.live) }

    /// It reports nothing until it is live again. It goes on watching.
    func isOff(_ reason: String) { report(.off(reason)) }

    /// Something has happened.
    func post(_ name: NotifyName, state: UInt64? = nil) { report(.found([EventChange(name, state: state)])) }

    /// How things are, without counting as a change.
    func note(_ name: NotifyName, state: UInt64) {
        report(.found([EventChange(name, state: state, isPosted: false)]))
    }
}

/// A state, and its last known value: a source that comes back posts only what has changed in the meantime.
struct LastState {
    private let name: NotifyName
    private var value: UInt64?

    init(_ name: NotifyName) { self.name = name }

    mutating func report(_ new: UInt64, to driver: SourceDriver?) {
        defer { value = new }
        if let value, value != new { driver?.post(name, state: new) } else { driver?.note(name, state: new) }
    }
}

/// A source that may hang for as long as what it asks: it lives on a thread of its own, and this stands for it on the
/// agent's.
final class ThreadedSource: Source {
    private let name: String
    /// What is asked by blocking calls, if anything is, and how long an answer may take, in milliseconds.
    private let asked: (title: String, limit: Int64)?
    private let make: @Sendable () -> any Source
    private var timer: Int?
    private var notices: Port<Bool>?
    private var wanted: Set<NotifyName> = []
    private var thread: EventThread?
    private var port: Port<SourceReport>?
    private weak var driver: SourceDriver?

    /// - Parameter make: called on the source's thread.
    init(
        _ name: String,
        asking asked: (title: String, limit: Int64)? = nil,
        _ make: @escaping @Sendable () -> any Source
    ) {
        (self.name, self.asked, self.make) = (name, asked, make)
    }

    func want(_ names: Set<NotifyName>) {
        wanted = names
        thread?.perform { loop in (loop.tenant as? SourceDriver)?.source.want(names) }
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        self.driver = driver
        thread = try SourceFault.rethrowing { () throws(NotifyBusError) in try EventThread(name: name) }
        let port = driver.loop.port { [weak self] report in self?.driver?.report(report) }
        self.port = port
        if asked != nil {
            let notices = driver.loop.port { [weak self] (_: Bool) in self?.watch() }
            self.notices = notices
            thread?.watchBlocking { notices.send(true) }
        }
        thread?.perform { [make, wanted] loop in
            let driver = SourceDriver(make(), on: loop) { report in port.send(report) }
            loop.tenant = driver
            driver.source.want(wanted)
            driver.begin()
        }
    }

    func end() {
        driver?.loop.close(port)
        driver?.loop.close(notices)
        driver?.loop.cancel(timer)
        thread?.stop()
        (thread, port, notices, timer, driver) = (nil, nil, nil, nil, nil)
    }

    /// Looks whether the thread waits too long for an answer, for as long as it may wait for one.
    private func watch() {
        guard let asked, let thread, let driver else { return }
        let (next, late) = thread.endBlocking(after: asked.limit)
        if let late { driver.isOff(SourceFault.silence(asked.title, late, asked.limit).reason) }
        driver.loop.cancel(timer)
        timer = next.map { time in driver.loop.at(time) { [weak self] in self?.watch() } }
    }
}
