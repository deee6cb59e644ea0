// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The agent, which keeps the states and must answer in time.
struct StateAgent {
    /// How long it may take to answer: the agent of a healthy bus takes milliseconds.
    static let limit = Duration.seconds(10)

    let center: NotifyCenter
    private let deadline: Deadline?

    init(_ options: CommonOptions, until deadline: Deadline?) {
        center = NotifyCenter(bus: options.notifyBus)
        self.deadline = deadline
    }

    /// How long the next answer is waited for.
    private func timeLimit(_ limit: Duration = StateAgent.limit) -> Duration {
        deadline.map { min($0.remaining, limit) } ?? limit
    }

    /// It is a timeout only if the time that the user gives is over.
    private func failure(_ error: NotifyBusError) -> CommandFailure {
        deadline?.hasPassed == true ? CommandFailure(error) : CommandFailure(lateBus: error)
    }

    private func failure(_ error: AgentError) -> CommandFailure {
        switch error {
        case .unreachable(let error): failure(error)
        case .refused(let fault): CommandFailure(fault.message.isEmpty ? fault.name : fault.message)
        }
    }

    /// Changes a state. An agent that has just started may not know yet that the name is observed, and is asked again.
    private func change<Answer>(_ body: () throws(AgentError) -> Answer) throws(CommandFailure) -> Answer {
        var end: Deadline?
        while true {
            do throws(AgentError) {
                return try body()
            } catch {
                guard case .refused(let fault) = error, fault.name == AgentInterface.ErrorName.notObserved else {
                    throw failure(error)
                }
                if end == nil, agentIsNew { end = Deadline(after: timeLimit(Takeover.limit)) }
                guard let end, !end.hasPassed else { throw failure(error) }
                Takeover.pause()
            }
        }
    }

    private var agentIsNew: Bool {
        let status = try? center.agentStatus()
        return Takeover.mayLast(since: status?.fields.first { $0.key == "since" }?.value.uint64)
    }

    func state(of name: NotifyName) throws(CommandFailure) -> UInt64 {
        do throws(AgentError) {
            return try center.state(of: name, timeout: timeLimit())
        } catch {
            throw failure(error)
        }
    }

    func set(_ value: UInt64, of name: NotifyName) throws(CommandFailure) {
        try change { () throws(AgentError) in try center.setState(value, of: name, timeout: timeLimit()) }
    }

    /// Sets a state if it is `old`.
    ///
    /// - Returns: what it was.
    func swap(_ old: UInt64, for new: UInt64, of name: NotifyName) throws(CommandFailure) -> UInt64 {
        try change { () throws(AgentError) in try center.swapState(old, for: new, of: name, timeout: timeLimit()) }
    }

    func post(_ name: NotifyName) throws(CommandFailure) {
        do throws(NotifyBusError) {
            try center.postOnceConnected(name)
            try center.synchronize(timeout: timeLimit())
        } catch {
            throw failure(error)
        }
    }

    /// Observes names, and returns once that is live.
    func observe(
        _ names: [NotifyName],
        _ body: @escaping @Sendable () -> Void
    ) throws(CommandFailure) -> NotifyCenter.Observation {
        do throws(NotifyBusError) {
            return try center.addObserver(matching: .names(names), timeout: timeLimit(Deadline.busLimit)) { _ in body()
            }
        } catch {
            throw failure(error)
        }
    }
}
