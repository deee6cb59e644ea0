// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import Glibc
import NotifyCore

/// `notify-state`: reads, sets and waits for the states of names.
enum StateCommand {
    static func run(_ arguments: [Argument]) -> ExitCode {
        var diagnostics = Diagnostics(command: command.name)
        var settings = StateSettings()
        let beginning = command.begin(arguments, &settings, &diagnostics) { operands, settings throws(UsageError) in
            try StateRequest(operands, settings)
        }
        let request: StateRequest
        switch beginning {
        case .failure(let end): return end.code
        case .success(let understood): request = understood
        }
        do throws(CommandFailure) {
            switch request {
            case .get(let names): return try get(names, settings, diagnostics)
            case .set(let name, let value):
                return try change(name, settings) { agent throws(CommandFailure) in try agent.set(value, of: name) }
            case .add(let name, let amount, let isNegative):
                return try change(name, settings) { agent throws(CommandFailure) in
                    try add(amount, isNegative: isNegative, to: name, agent, settings)
                }
            case .swap(let name, let old, let new):
                return try change(name, settings) { agent throws(CommandFailure) in
                    let present = try agent.swap(old, for: new, of: name)
                    if present != old { throw CommandFailure("the state is \(present), not \(old)") }
                }
            case .wait(let name): return try StateWatcher([name], settings, diagnostics).wait(settings.condition)
            case .watch(let names): return try StateWatcher(names, settings, diagnostics).watch()
            }
        } catch {
            // Timing out is what was asked for.
            if error.code == .timedOut { diagnostics.notice(error.message) } else { diagnostics.error(error.message) }
            return error.code
        }
    }

    private static func get(
        _ names: [NotifyName],
        _ settings: StateSettings,
        _ diagnostics: Diagnostics
    ) throws(CommandFailure) -> ExitCode {
        let agent = StateAgent(settings.common, until: Deadline(after: settings.timeout ?? StateAgent.limit))
        let output = StateOutput(settings, hasNames: names.count > 1)
        for name in names {
            if try !output.write(name, agent.state(of: name)) { break }
        }
        if settings.common.verbosity == .verbose {
            AgentReport(agent.center, settings.common.notifyBus).obstacles(to: names).forEach(diagnostics.error)
        }
        return .done
    }

    /// Changes a state, and posts the name if asked to.
    private static func change(
        _ name: NotifyName,
        _ settings: StateSettings,
        _ body: (StateAgent) throws(CommandFailure) -> Void
    ) throws(CommandFailure) -> ExitCode {
        let agent = StateAgent(settings.common, until: Deadline(after: settings.timeout ?? StateAgent.limit))
        try body(agent)
        if settings.posts { try agent.post(name) }
        return .done
    }

    /// Adds to a state, and prints what it is then. Others may do the same at the same time.
    private static func add(
        _ amount: UInt64,
        isNegative: Bool,
        to name: NotifyName,
        _ agent: StateAgent,
        _ settings: StateSettings
    ) throws(CommandFailure) {
        var old = try agent.state(of: name)
        while true {
            let (new, isOutside) =
                isNegative ? old.subtractingReportingOverflow(amount) : old.addingReportingOverflow(amount)
            if isOutside {
                let bound = isNegative ? "less than 0" : "more than \(UInt64.max)"
                throw CommandFailure("the state is \(old), and can't be \(bound)")
            }
            let present = try agent.swap(old, for: new, of: name)
            if present == old {
                _ = try StateOutput(settings, hasNames: false).write(name, new)
                return
            }
            old = present
        }
    }
}

/// The values of the options of `notify-state`.
struct StateSettings: CommonSettings {
    var common = CommonOptions()

    var isJSON = false
    /// Whether a name may have blanks at its ends.
    var isLiteral = false
    var posts = false
    var condition: StateCondition?
    /// How long the whole command may take; nil for no limit where it waits for others.
    var timeout: Duration?

    mutating func set(_ condition: StateCondition) throws(UsageError) {
        if self.condition != nil { throw UsageError("use only one of --is and --not") }
        self.condition = condition
    }
}

extension StateCommand {
    static let command = Command<StateSettings>(
        name: "notify-state",
        usage: [
            "[get] [OPTION]... NAME...",
            "set [OPTION]... NAME VALUE",
            "add [OPTION]... NAME N",
            "swap [OPTION]... NAME OLD NEW",
            "wait [OPTION]... NAME",
            "watch [OPTION]... NAME...",
        ],
        summary: [
            "Reads, sets and waits for the states of names. A state is a 64-bit number that the lifecycle agent keeps for "
                + "a name as long as some program observes it or agent.conf lists it. It is 0 until it is set.",
            "Prints the value, or for several names the name, a tab and the value. A VALUE is a whole number, decimal or "
                + "hexadecimal with 0x.",
        ],
        subcommands: StateVerb.allCases.map { ($0.rawValue, $0.meaning) },
        options: own
            + Option.common(
                quiet: "Print only errors on standard error.",
                verbose: "Report on standard error when the observer is live."
            ),
        operands: .observedNames,
        hasNumbers: true,
        exitStatus: [
            ("0", "Success, or the reader of the output went away."),
            (
                "1",
                "The agent refused: no program observes NAME, it belongs to another user, or only the agent sets its state. With "
                    + "swap: the state is not OLD. With add: it would be less than 0 or too large."
            ),
            ("2", "The timeout expired."),
            ("64", "The command line was invalid."),
            ("69", "There is no bus or no agent, the bus did not answer, or the agent did not for 2 s."),
            ExitCode.killed,
        ],
        examples: [
            "notify-state com.example.battery",
            "notify-state set com.example.battery 80 --post",
            "notify-state add com.example.jobs 1",
            "notify-state wait com.example.ready --is 1 -t 30s",
            "notify-state watch com.example.battery",
        ]
    )

    private static var own: [Option<StateSettings>] {
        let group = "Options"
        return [
            .flag(
                "post",
                group: group,
                help: "With set, add and swap: post NAME afterwards, so that its observers look."
            ) {
                $0.posts = true
            },
            .value("is", nil, "VALUE", .number, group: group, help: "With wait: wait until the state is VALUE.") {
                settings,
                value throws(UsageError) in
                try settings.set(.equal(StateValue.parse(value)))
            },
            .value("not", nil, "VALUE", .number, group: group, help: "With wait: wait until the state is not VALUE.") {
                settings,
                value throws(UsageError) in
                try settings.set(.unequal(StateValue.parse(value)))
            },
            .flag("literal", group: group, help: "Take NAME literally; allow white space at its ends.") {
                $0.isLiteral = true
            },
            .flag("json", group: group, help: "Print one JSON object per line, with name and state.") {
                $0.isJSON = true
            },
            .timeout(
                group: group,
                help: "Give up with status 2 after DURATION. Examples: 500ms, 2s, 1h30m; a plain number means seconds. "
                    + "By default wait and watch never give up, and the other commands do after 10s. If the agent "
                    + "has not answered after 2s, the status is 69."
            ) { $0.timeout = $1 },
        ]
    }
}

/// The command named by the first operand.
enum StateVerb: String, CaseIterable {
    case get, set, add, swap, wait, watch

    var meaning: String {
        switch self {
        case .get: "Print the state of each NAME (the default command)."
        case .set: "Set the state of NAME, which some program must observe or agent.conf must list."
        case .add: "Add N, which may be negative, to the state of NAME, and print it. No other change is lost."
        case .swap: "Set the state of NAME to NEW if it is OLD; otherwise the status is 1."
        case .wait: "Wait for a state of NAME, or for any change without --is and --not, and print it."
        case .watch: "Print the state of each NAME and then each change, until a signal ends it."
        }
    }
}

extension Program {
    package static var notifyState: Program { Program(StateCommand.command, run: StateCommand.run) }
}
