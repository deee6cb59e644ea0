// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The agent, which keeps the states and must answer in time.
struct StateAgent {
    let center: NotifyCenter
    private let deadline: Deadline?

    init(_ options: CommonOptions, until deadline: Deadline?) {
        center = NotifyCenter(bus: options.notifyBus)
        self.deadline = deadline
    }

    /// The remaining time, at most 10 s: the agent of a healthy bus answers in milliseconds.
    private var timeLimit: Duration { min(deadline?.remaining ?? .seconds(10), .seconds(10)) }

    func state(of name: NotifyName) throws(CommandFailure) -> UInt64 {
        do throws(AgentError) {
            return try center.state(of: name, timeout: timeLimit)
        } catch {
            throw CommandFailure(error)
        }
    }

    func set(_ value: UInt64, of name: NotifyName) throws(CommandFailure) {
        do throws(AgentError) {
            try center.setState(value, of: name, timeout: timeLimit)
        } catch {
            throw CommandFailure(error)
        }
    }

    func post(_ name: NotifyName) throws(CommandFailure) {
        do throws(NotifyBusError) {
            try center.post(name)
            try center.synchronize(timeout: timeLimit)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Observes names, and returns once that is live.
    func observe(
        _ names: [NotifyName],
        _ body: @escaping @Sendable () -> Void
    ) throws(CommandFailure) -> NotifyCenter.Observation {
        do throws(NotifyBusError) {
            let limit = Duration.seconds(25)
            let timeout = min(deadline?.remaining ?? limit, limit)
            return try center.addObserver(for: .names(names), timeout: timeout) { _ in body() }
        } catch {
            throw CommandFailure(error)
        }
    }
}
