// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// A change of state to be made.
struct StateCommand {
    enum Change {
        case set(String, freezes: Bool)
        case release
    }

    let change: Change
    let targets: [Target]

    /// Changes one target after another and comes back when all changes are in force.
    ///
    /// An error about one target is said, and the others are still changed.
    func apply(_ settings: LifecycleSettings, _ diagnostics: Diagnostics) throws(LifecycleFailure) -> ExitCode {
        var agent = try AgentConnection(settings)
        var codes: [ExitCode] = []
        for target in targets {
            do throws(LifecycleFailure) {
                let count = try change(target, by: &agent)
                diagnostics.detail("\(target.title): \(outcome), \(count) observer\(count == 1 ? "" : "s")")
            } catch {
                if error.isLasting { throw error }
                diagnostics.error(error.message)
                codes.append(error.code)
            }
        }
        // Time only tells the story if nothing else went wrong.
        return codes.isEmpty ? .done : codes.allSatisfy { $0 == .timedOut } ? .timedOut : .failed
    }

    private var outcome: String {
        switch change {
        case .set(let state, _): state
        case .release: "released"
        }
    }

    private func change(_ target: Target, by agent: inout AgentConnection) throws(LifecycleFailure) -> UInt32 {
        let member: String
        let answer: [BusValue]
        switch change {
        case .set(let state, let freezes):
            member = "SetState"
            answer = try agent.call(member, [.string(target.text), .string(state), .boolean(freezes)], for: target)
        case .release:
            member = "Release"
            answer = try agent.call(member, [.string(target.text)], for: target)
        }
        guard answer.count == 1, let count = answer[0].uint32 else {
            let signature = answer.map(\.signature).joined()
            throw .nonsense(member, "for \(target.title) it has the type '\(signature)' in place of 'u'")
        }
        return count
    }
}
