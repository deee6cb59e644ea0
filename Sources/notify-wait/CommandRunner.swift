// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Runs the command after `--`, one run at a time.
struct CommandRunner {
    /// A run that is due. Two for one name are equal, so that a queue may merge them.
    private struct Run: Hashable {
        let name: NotifyName
        let count: Int

        static func == (a: Run, b: Run) -> Bool {
            a.name == b.name
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(name)
        }
    }

    private enum State {
        case idle
        case running(Child, Run)
        /// Told to end, to make room for another run; killed at the deadline.
        case stopping(Child, deadline: Int64?)
    }

    private let command: [Argument]
    private let onBusy: WaitSettings.OnBusy
    private let diagnostics: Diagnostics
    private var state = State.idle
    private var waiting = CoalescingQueue<Run>()
    /// The one run that is to follow a restart.
    private var replacement: Run?
    /// Whether a run has failed, or could not begin.
    private(set) var hasFailed = false

    init(_ command: [Argument], _ onBusy: WaitSettings.OnBusy, _ diagnostics: Diagnostics) {
        self.command = command
        self.onBusy = onBusy
        self.diagnostics = diagnostics
    }

    /// Whether nothing runs and nothing waits to.
    var isIdle: Bool {
        if case .idle = state { true } else { false }
    }

    /// When `tick` must be called, on the monotonic clock; nil for never.
    var deadline: Int64? {
        if case .stopping(_, let deadline) = state { deadline } else { nil }
    }

    mutating func notify(_ name: NotifyName, count: Int) {
        let run = Run(name: name, count: count)
        if isIdle {
            start(run)
            return
        }
        switch onBusy {
        case .queue:
            _ = waiting.enqueue(run)
        case .drop:
            diagnostics.detail("the command is busy; no run for '\(name)'")
        case .restart:
            replacement = run
            if case .running(let child, _) = state {
                child.signal(SIGTERM)
                state = .stopping(child, deadline: Clock.monotonic + 5_000_000_000)
            }
        }
    }

    /// A child has ended; perhaps ours.
    mutating func childHasEnded() {
        switch state {
        case .idle:
            return
        case .running(let child, let run):
            guard let end = child.reap() else { return }
            if end != .exited(0) {
                hasFailed = true
                diagnostics.error("the command for '\(run.name)' \(end.text)")
            }
        case .stopping(let child, _):
            guard child.reap() != nil else { return }
        }
        state = .idle
        startNext()
    }

    /// The deadline has passed.
    mutating func tick() {
        if case .stopping(let child, .some) = state {
            child.signal(SIGKILL)
            state = .stopping(child, deadline: nil)
        }
    }

    /// Hands a signal that ends us on to what runs, and begins nothing more.
    mutating func end(by number: Int32) {
        dropWaiting()
        switch state {
        case .idle: break
        case .running(let child, _), .stopping(let child, _):
            child.signal(number)
            state = .stopping(child, deadline: nil)
        }
    }

    /// Forgets the runs that have not begun.
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
        let variables = ["NOTIFY_NAME=" + run.name.string, "NOTIFY_COUNT=\(run.count)"]
        switch Child.start(command, variables, .background) {
        case .success(let child):
            state = .running(child, run)
        case .failure(let error):
            hasFailed = true
            diagnostics.error("can't run \(command[0].quoted): \(Diagnostics.text(of: error.number))")
        }
    }
}
