// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Observes names first and then checks their states immediately, after each post, and from time to time: a program
/// that sets a state may post before setting it, or not at all.
///
/// Signals have their default effect: there is nothing to clean up.
struct StateWatcher {
    private let names: [NotifyName]
    private let agent: StateAgent
    private let output: StateOutput
    private let report: AgentReport
    private let diagnostics: Diagnostics
    private let deadline: Deadline?
    private let wakeup: WakeDescriptor
    private let observation: NotifyCenter.Observation
    /// How soon it checks again after a post, in milliseconds, and then less and less often.
    private var retry = BackOff(first: 2, last: 1_000)

    init(_ names: [NotifyName], _ settings: StateSettings, _ diagnostics: Diagnostics) throws(CommandFailure) {
        self.names = names
        deadline = settings.timeout.map { Deadline(after: $0) }
        agent = StateAgent(settings.common, until: deadline)
        output = StateOutput(settings, hasNames: names.count > 1)
        report = AgentReport(agent.center, settings.common.notifyBus)
        self.diagnostics = diagnostics
        wakeup = try .ofCommand()
        let wakeup = wakeup
        observation = try agent.observe(names) { wakeup.signal() }
        diagnostics.detail("the observer is live")
    }

    /// Returns once the state is as required, and prints it; without a condition, once it has changed.
    consuming func wait(_ condition: StateCondition?) throws(CommandFailure) -> ExitCode {
        let name = names[0]
        var condition = condition
        var value = try agent.state(of: name)
        condition = condition ?? .unequal(value)
        if condition?.holds(for: value) != true {
            for line in report.obstacles(to: names) { diagnostics.notice(line) }
        }
        while condition?.holds(for: value) != true {
            if try !sleep() { return .done }
            value = try look(at: name) ?? value
        }
        _ = try output.write(name, value)
        return .done
    }

    /// Prints the states and every change, until standard output has no reader any more.
    consuming func watch() throws(CommandFailure) -> ExitCode {
        var values: [NotifyName: UInt64] = [:]
        for name in names where values[name] == nil {
            let value = try agent.state(of: name)
            values[name] = value
            if try !output.write(name, value) { return .done }
        }
        if diagnostics.verbosity == .verbose { report.obstacles(to: names).forEach(diagnostics.error) }
        while true {
            if try !sleep() { return .done }
            for name in values.keys {
                guard let value = try look(at: name), value != values[name] else { continue }
                values[name] = value
                retry.reset()
                if try !output.write(name, value) { return .done }
            }
        }
    }

    /// - Returns: nil while the agent or the bus is unavailable.
    private func look(at name: NotifyName) throws(CommandFailure) -> UInt64? {
        do throws(CommandFailure) {
            return try agent.state(of: name)
        } catch {
            if error.code == .failed { throw error }
            return nil
        }
    }

    /// Sleeps until a post, or until the pause is over.
    ///
    /// - Returns: false if standard output has no reader any more.
    private mutating func sleep() throws(CommandFailure) -> Bool {
        if let deadline, deadline.hasPassed { throw CommandFailure("timed out", code: .timedOut) }
        var sources = [
            pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0),
            // Without events it still reports that the reader has gone.
            pollfd(fd: STDOUT_FILENO, events: 0, revents: 0),
        ]
        poll(&sources, 2, min(Int32(retry.next()), deadline?.milliseconds ?? .max))
        if Int32(sources[1].revents) & (POLLERR | POLLHUP) != 0 { return false }
        if sources[0].revents != 0 {
            wakeup.clear()
            retry.reset()
        }
        return true
    }
}
