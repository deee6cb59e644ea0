// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// What the options of `notify-state` were set to.
struct StateSettings: CommonSettings {
    var common = CommonOptions()

    var isJSON = false
    var posts = false
    var condition: StateCondition?
    /// How long all of it may take; nil for as long as it takes, where it waits for others.
    var timeout: Duration?

    mutating func set(_ condition: StateCondition) throws(UsageError) {
        if self.condition != nil { throw UsageError("one state is waited for; keep one of --is and --not") }
        self.condition = condition
    }
}

extension StateCommand {
    static let command = Command<StateSettings>(
        name: "notify-state",
        usage: [
            "[get] [OPTION]... NAME...",
            "set [OPTION]... NAME VALUE",
            "wait [OPTION]... NAME",
            "watch [OPTION]... NAME...",
        ],
        summary: [
            "Reads, sets and waits for the states of names. A state is a number of 64 bits that the lifecycle agent keeps "
                + "with a name as long as somebody observes the name; 0 if nobody has set it.",
            "It prints the value, with several names after the name and a tab. A VALUE is a whole number, or 0x and "
                + "hexadecimal digits.",
        ],
        subcommands: Verb.allCases.map { ($0.rawValue, $0.meaning) },
        options: own
            + Option.common(
                quiet: "Says nothing but errors on standard error.",
                verbose: "Says on standard error when it waits."
            ),
        operands: .names,
        exitStatus: [
            ("0", "Done, or nobody reads the output any more."),
            ("1", "The agent refused: nobody observes NAME, or it is another user's."),
            ("2", "The time was over first."),
            ("64", "The command line was wrong."),
            ("69", "There is no bus or no agent."),
            ExitCode.killed,
        ],
        examples: [
            "notify-state com.example.battery",
            "notify-state set com.example.battery 80 --post",
            "notify-state wait com.example.ready --is 1 -t 30s",
            "notify-state watch com.example.battery",
        ]
    )

    private static var own: [Option<StateSettings>] {
        let group = "What it does"
        return [
            .flag("post", group: group, help: "With set: posts NAME afterwards, so that who observes it looks.") {
                $0.posts = true
            },
            .value("is", nil, "VALUE", .number, group: group, help: "With wait: until the state is VALUE.") {
                settings,
                value throws(UsageError) in
                try settings.set(.equal(StateValue.parse(value)))
            },
            .value("not", nil, "VALUE", .number, group: group, help: "With wait: until the state is not VALUE.") {
                settings,
                value throws(UsageError) in
                try settings.set(.unequal(StateValue.parse(value)))
            },
            .flag("json", group: group, help: "Prints JSON, an object a line, with name and state.") {
                $0.isJSON = true
            },
            .timeout(
                group: group,
                help: "Ends with status 2 after this long: 500ms, 2s, 1h30m; a number alone is seconds. If not given, "
                    + "wait and watch go on for ever, and the others for 10s."
            ) { $0.timeout = $1 },
        ]
    }
}

/// What the first operand asks for.
enum Verb: String, CaseIterable {
    case get, set, wait, watch

    var meaning: String {
        switch self {
        case .get: "Prints the state of each NAME; so it does if none of these words is given."
        case .set: "Sets the state of NAME, which somebody must observe."
        case .wait: "Waits for a state of NAME, or without --is and --not for a change, and prints it."
        case .watch: "Prints the state of each NAME, and then each change, until a signal ends it."
        }
    }
}
