// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import NotifyCore

/// A requested state change.
struct TargetChange {
    enum Change {
        case set(LifecycleState, freezes: Bool)
        case release
    }

    let change: Change
    let targets: [TargetOrEveryone]

    /// Changes one target after another, and returns once all changes are in effect.
    ///
    /// An error about one target is reported, and the others are still changed.
    func apply(_ settings: LifecycleSettings, _ diagnostics: Diagnostics) throws(CommandFailure) -> ExitCode {
        let agent = try AgentConnection(settings)
        var codes: [ExitCode] = []
        var thawed: [StoppedThing: StopReason] = [:]
        var nextAgent: Deadline?
        for target in targets {
            do throws(CommandFailure) {
                let count = try change(target, by: agent)
                diagnostics.detail("\(target.title): \(outcome), \(count) observer\(count == 1 ? "" : "s")")
            } catch {
                var failure: CommandFailure? = error
                if error.code == .unavailable, continues(target, &thawed, settings) {
                    failure = changeByNextAgent(target, agent, until: &nextAgent)
                }
                guard let failure else {
                    diagnostics.detail("\(target.title): thawed; an agent that is gone had frozen it")
                    continue
                }
                if failure.isLasting { throw failure }
                diagnostics.error(failure.message)
                codes.append(failure.code)
            }
        }
        // The timeout status is used only if nothing else went wrong.
        return codes.isEmpty ? .done : codes.allSatisfy { $0 == .timedOut } ? .timedOut : .failed
    }

    /// Observers of an agent that is gone keep their states for some time, and report them to another one that starts
    /// meanwhile: then the change is still to be made.
    ///
    /// - Parameter deadline: until when there may be another, for all targets together.
    /// - Returns: why another agent has not made the change; nil if it has, or if there is none.
    private func changeByNextAgent(
        _ target: TargetOrEveryone,
        _ agent: AgentConnection,
        until deadline: inout Deadline?
    ) -> CommandFailure? {
        // The programs that continue learn a moment after this that the agent is gone.
        let end = deadline ?? Deadline(after: Takeover.limit + .milliseconds(500))
        deadline = end
        while true {
            do throws(CommandFailure) {
                _ = try change(target, by: agent)
                return nil
            } catch {
                guard error.code == .unavailable else { return error }
            }
            if end.hasPassed { return nil }
            poll(nil, 0, 250)
        }
    }

    /// Without an agent every program is in the foreground, and only programs that a killed agent had frozen do not
    /// run: they continue.
    ///
    /// - Returns: whether the target is one of those.
    private func continues(
        _ target: TargetOrEveryone,
        _ thawed: inout [StoppedThing: StopReason],
        _ settings: LifecycleSettings
    ) -> Bool {
        if case .set(let state, _) = change, state != .foreground { return false }
        let things = MarkFolder(servesMachine: settings.common.bus == .system).thawAbandoned()
        thawed.merge(things) { $1 }
        switch target {
        case .one(.process(let pid)): return thawed.contain(pid)
        case .everyone: return !thawed.isEmpty
        case .one: return false
        }
    }

    private var outcome: String {
        switch change {
        case .set(let state, _): state.rawValue
        case .release: "released"
        }
    }

    private func change(_ target: TargetOrEveryone, by agent: AgentConnection) throws(CommandFailure) -> UInt32 {
        switch change {
        case .set(let state, let freezes):
            let call = AgentInterface.SetState(target: target.text, state: state, freezes: freezes)
            return try agent.call(call, for: target).value
        case .release:
            return try agent.call(AgentInterface.Release(target.text), for: target).value
        }
    }
}
