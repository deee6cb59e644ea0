// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// A valid command line.
enum LifecycleRequest {
    case list, status, launches, watch
    case change(TargetChange)

    init(_ operands: Operands, _ settings: LifecycleSettings) throws(UsageError) {
        var rest = operands.beforeDashes + (operands.afterDashes ?? [])
        let name = try LifecycleCommand.command.takeSubcommand(from: &rest)
        guard let verb = Verb(rawValue: name) else { throw UsageError("unknown command '\(name)'") }
        if settings.freezes && verb != .suspend {
            throw UsageError("--freeze can only be used with 'suspend'")
        }
        if verb.takesTargets {
            if settings.isJSON {
                throw UsageError("--json can't be used with '\(name)', which prints nothing")
            }
            if rest.isEmpty, verb != .release {
                throw UsageError("'\(name)' requires a TARGET: pid:N, :1.N or app:ID; see 'notify-lifecycle list'")
            }
            var targets: [Whom] = []
            for operand in rest { targets.append(try Whom(operand)) }
            let change = verb.state.map { TargetChange.Change.set($0, freezes: settings.freezes) } ?? .release
            self = .change(TargetChange(change: change, targets: targets.isEmpty ? [.everyone] : targets))
            return
        }
        if let operand = rest.first {
            throw UsageError("'\(name)' doesn't take a TARGET such as \(operand.quoted)")
        }
        switch verb {
        case .status: self = .status
        case .launches: self = .launches
        case .watch: self = .watch
        default: self = .list
        }
    }
}
