// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// A valid command line.
enum LifecycleRequest {
    case list, status, launches, focus, watch
    case nap(Bool)
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
            var targets: [TargetOrEveryone] = []
            for operand in rest { targets.append(try TargetOrEveryone(operand)) }
            let change = verb.state.map { TargetChange.Change.set($0, freezes: settings.freezes) } ?? .release
            self = .change(TargetChange(change: change, targets: targets.isEmpty ? [.everyone] : targets))
            return
        }
        if verb == .nap {
            if settings.isJSON { throw UsageError("--json can't be used with 'nap', which prints nothing") }
            switch rest.map(\.string) {
            case ["on"]: self = .nap(true)
            case ["off"]: self = .nap(false)
            default: throw UsageError("'nap' requires 'on' or 'off'")
            }
            return
        }
        if let operand = rest.first {
            throw UsageError("'\(name)' doesn't take a TARGET such as \(operand.quoted)")
        }
        switch verb {
        case .status: self = .status
        case .launches: self = .launches
        case .focus: self = .focus
        case .watch: self = .watch
        default: self = .list
        }
    }
}

/// The command named by the first operand.
enum Verb: String, CaseIterable {
    case list, status, launches, focus, watch
    case foreground, background, suspend, resume, release, nap

    var meaning: String {
        switch self {
        case .list: "Show every observer: its process, state and counters."
        case .status: "Show the status of the agent itself."
        case .launches: "Show what is started when a name is posted, and its progress."
        case .focus: "Show which program has the focus."
        case .watch: "Show the observers and then each state change, until a signal ends it."
        case .foreground: "Deliver every post to the TARGETs."
        case .background: "Drop every post for the TARGETs."
        case .suspend: "Keep one post of each name for the TARGETs until they are resumed."
        case .resume: "Put the TARGETs in the foreground and deliver what was kept for them."
        case .release: "Undo what was set for the TARGETs, or for all: the program and the desktop decide again."
        case .nap: "With off: wake all napping programs, and let none nap until the agent restarts. With on: undo that."
        }
    }

    /// Whether it takes targets.
    var takesTargets: Bool {
        switch self {
        case .list, .status, .launches, .focus, .watch, .nap: false
        case .foreground, .background, .suspend, .resume, .release: true
        }
    }

    /// The state that it puts targets in; nil if it changes nothing.
    var state: LifecycleState? {
        switch self {
        case .list, .status, .launches, .focus, .watch, .release, .nap: nil
        case .foreground, .resume: .foreground
        case .background: .background
        case .suspend: .suspended
        }
    }
}
