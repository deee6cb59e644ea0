// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Runs the command after `--`, one run at a time.
struct CommandRunner {
    private enum State {
        case idle
        case running(StartedRun, Run)
        /// Asked to end; killed at the deadline, again and again: a process that is being started meanwhile is not
        /// found at once.
        case stopping(StartedRun, deadline: Int64)
    }

    /// How long a run may take to end, in nanoseconds, before it is killed.
    static let patience: Int64 = 5_000_000_000

    private let command: [Argument]
    private let onBusy: WaitSettings.OnBusy
    private let settles: Bool
    private let diagnostics: Diagnostics
    private var state = State.idle
    private var waiting: WaitingRuns
    /// The run that is to follow a restart.
    private var replacement: Run?
    private var refused = 0
    /// The status of the last run that failed or could not be started, in shell terms; nil if there was none.
    private(set) var failure: ExitCode?

    init(_ command: [Argument], _ settings: WaitSettings, _ diagnostics: Diagnostics) {
        self.command = command
        onBusy = settings.onBusy ?? .queue
        settles = settings.settle != nil
        self.diagnostics = diagnostics
        waiting = WaitingRuns(onBusy == .each ? .none : settles ? .all : .sameName)
    }

    /// Whether no run is active or due.
    var isIdle: Bool {
        if case .idle = state { true } else { false }
    }

    /// When `tick` must be called, on the monotonic clock; nil for never.
    var deadline: Int64? {
        if case .stopping(_, let deadline) = state { deadline } else { nil }
    }

    mutating func notify(_ run: Run) {
        if isIdle {
            start(run)
            return
        }
        switch onBusy {
        case .queue, .each:
            if !waiting.add(run) { refuse(run) }
        case .drop:
            diagnostics.detail("the command is still running; skipping \(run.subject)")
        case .restart:
            if !settles || replacement == nil {
                replacement = run
            } else if replacement?.add(run) == false {
                refuse(run)
            }
            if case .running(let started, _) = state { stop(started, by: SIGTERM) }
        }
    }

    /// Runs it for a heartbeat, unless it is running already.
    mutating func beat(after count: Int) {
        if isIdle { start(Run(heartbeatAfter: count)) }
    }

    private mutating func refuse(_ run: Run) {
        // Reported once, as it would otherwise drown out everything else.
        if refused == 0 {
            diagnostics.error(
                settles
                    ? "skipping further names: \(WaitingRuns.limit) names are queued"
                    : "skipping \(run.subject) and all that follow: \(WaitingRuns.limit) runs are queued"
            )
        }
        refused += 1
    }

    private mutating func stop(_ started: StartedRun, by number: Int32) {
        started.signal(number)
        state = .stopping(started, deadline: Clock.monotonic + CommandRunner.patience)
    }

    /// A child has exited; perhaps ours.
    mutating func childHasEnded() {
        switch state {
        case .idle:
            return
        case .running(let started, let run):
            guard let end = started.reap() else { return }
            if end != .exited(0) {
                failure = end.status
                diagnostics.error("the command for \(run.subject) \(end.text)")
            }
        case .stopping(let started, _):
            guard started.reap() != nil else { return }
        }
        state = .idle
        startNext()
    }

    /// The deadline has passed.
    mutating func tick() {
        if case .stopping(let started, _) = state {
            started.signal(SIGKILL)
            state = .stopping(started, deadline: Clock.monotonic + 50_000_000)
        }
    }

    /// Forwards the signal that ends us to the running command, and starts nothing more.
    mutating func end(by number: Int32) {
        dropWaiting()
        switch state {
        case .idle: break
        case .running(let started, _), .stopping(let started, _): stop(started, by: number)
        }
    }

    /// Forgets the runs that have not started.
    mutating func dropWaiting() {
        waiting.removeAll()
        replacement = nil
    }

    private mutating func startNext() {
        while isIdle, let run = replacement ?? waiting.popFirst() {
            replacement = nil
            start(run)
        }
    }

    private mutating func start(_ run: Run) {
        var variables = ["NOTIFY_NAME=" + (run.name?.string ?? ""), "NOTIFY_COUNT=\(run.count)"]
        if settles { variables.append("NOTIFY_NAMES=" + CommandRunner.list(run.names)) }
        switch StartedRun.start(command, variables) {
        case .success(let started):
            state = .running(started, run)
        case .failure(let error):
            // Distinguished as shells do.
            failure = ExitCode(rawValue: error.number == ENOENT ? 127 : 126)
            diagnostics.error("can't run \(command[0].quoted): \(describe(errno: error.number))")
        }
    }

    /// The names, one per line, as many as a variable can hold, without those that would be taken for several.
    private static func list(_ names: [NotifyName]) -> String {
        // The kernel's limit is 128 KB; see execve(2).
        var room = 120_000
        let single = names.filter { !$0.string.utf8.contains(UInt8(ascii: "\n")) }
        let fitting = single.prefix { name in
            room -= name.string.utf8.count + 1
            return room >= 0
        }
        return fitting.map(\.string).joined(separator: "\n")
    }
}
