// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// A command line that makes sense.
enum Request {
    case list, status, launches, watch
    case change(StateCommand)

    init(_ operands: Operands, _ settings: LifecycleSettings) throws(UsageError) {
        var rest = operands.beforeDashes + (operands.afterDashes ?? [])
        let name = try LifecycleCommand.command.takeSubcommand(from: &rest)
        guard let verb = Verb(rawValue: name) else { throw UsageError("there is no command '\(name)'") }
        if settings.freezes && verb != .suspend {
            throw UsageError("--freeze goes with 'suspend'; '\(name)' stops no process")
        }
        if verb.takesTargets {
            if settings.isJSON {
                throw UsageError("--json is for list, status, launches and watch; '\(name)' prints nothing")
            }
            if rest.isEmpty, verb != .release {
                throw UsageError("'\(name)' needs a TARGET: pid:N, :1.N or app:ID; 'notify-lifecycle list' shows them")
            }
            var targets: [Whom] = []
            for operand in rest { targets.append(try Whom(operand)) }
            let change = verb.state.map { StateCommand.Change.set($0, freezes: settings.freezes) } ?? .release
            self = .change(StateCommand(change: change, targets: targets.isEmpty ? [.everyone] : targets))
            return
        }
        if let operand = rest.first {
            throw UsageError("'\(name)' takes no TARGET such as \(operand.quoted); it shows everything")
        }
        switch verb {
        case .status: self = .status
        case .launches: self = .launches
        case .watch: self = .watch
        default: self = .list
        }
    }
}
