// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// Why something was not done, and the corresponding exit status.
struct LifecycleFailure: Error {
    let message: String
    let code: ExitCode
    /// Whether any further request would fail in the same way.
    let isLasting: Bool

    init(_ message: String, code: ExitCode = .failed, isLasting: Bool = false) {
        self.message = message
        self.code = code
        self.isLasting = isLasting
    }

    init(_ error: NotifyBusError) {
        self.init(error.description, code: error.code == .timedOut ? .timedOut : ExitCode(error), isLasting: true)
    }

    /// There is no agent to ask, or none that this program could see.
    static func noAgent(on bus: NotifyCenter.Bus?) -> LifecycleFailure {
        guard (bus ?? .session).isWhole else {
            return LifecycleFailure(
                "a program in a sandbox can't reach the lifecycle agent; run notify-lifecycle outside",
                code: .unavailable,
                isLasting: true
            )
        }
        let option =
            switch bus?.kind {
            case .system: " --system"
            case .address(let address): " --address '\(address)'"
            case .session, nil: ""
            }
        return LifecycleFailure(
            "no lifecycle agent runs on this bus; start one with notify-agent\(option)",
            code: .unavailable,
            isLasting: true
        )
    }

    static let lostBus = LifecycleFailure(
        "the bus went away before the agent answered",
        code: .unavailable,
        isLasting: true
    )

    static func lateAgent(on bus: NotifyCenter.Bus?) -> LifecycleFailure {
        LifecycleFailure(
            "the agent did not answer in time\(AgentHint.text(for: bus))",
            code: .timedOut,
            isLasting: true
        )
    }

    /// The agent violated the protocol.
    static func nonsense(_ member: String, _ error: ArgumentError, for target: Whom?) -> LifecycleFailure {
        let detail =
            switch error {
            case .types(let expected, let given):
                (target.map { "for \($0.title) it has" } ?? "it has") + " the type '\(given)' in place of '\(expected)'"
            case .missing(let key): "an entry has no '\(key)'"
            case .mistyped(let key, _, let given): "the '\(key)' of an entry has the type '\(given)'"
            case .value(let text): text
            }
        return LifecycleFailure(
            "the agent's answer to \(member) is invalid: \(detail); its version may differ from this command's"
        )
    }
}
