// SPDX-License-Identifier: Apache-2.0

extension Scope {
    /// Where each break is found soonest. The others are tried if it is not there.
    package static let showing: [Mutation: String] = [
        .gateOpensBeforeRules: "cut off", .keepsRules: "exempt", .leavesRules: "rules", .keepsNoDeadline: "canceling",
        .confirmsAtOnce: "bus", .forgetsNames: "addition", .sendsRulesFirst: "addition", .closesBehind: "addition",
        .confirmsUnheld: "addition", .parksBehind: "parking held", .marksAtOnce: "suspend", .neverMarks: "suspend",
        .deliversNothing: "suspend", .confirmsDelivery: "delivery", .deliversTwice: "suspend",
        .unsubscribesFirst: "continued in parts", .narrowsFirst: "prefixes", .handsBackEarly: "held back",
        .forgetsHeldBack: "held back and stopped",
        .forgetsCutOff: "cut off", .believesAnybody: "order", .believesAnyPath: "reserved", .overtakes: "order",
        .dropsEarly: "room", .ignoresLock: "decider", .locksEveryone: "nap", .ignoresFocus: "nap",
        .ignoresEmptyDesktop: "sources", .ignoresApplication: "sources", .judgesEveryone: "sources",
        .believesDeadSource: "sources", .sleepAffectsAll: "lock", .overridesPerson: "decider",
        .forgetsFollowing: "nap", .saysLockedEarly: "lock", .forgetsStates: "states", .insistsOnStates: "states",
        .remembersOwnStates: "states of others",
        .believesReplaced: "successors", .forgetsHandedOver: "handed over", .endsStreamEarly: "handed over",
        .leavesNoMark: "handed over", .refusesUnread: "handed over and adding",
        .callsOne: "callbacks", .callsCancelled: "callbacks", .forgetsThaw: "freeze",
        .ignoresStream: "stopped", .coalescesEarly: "socket", .forgetsInFlight: "socket", .writesAgainLast: "socket",
        .exitsAtOnce: "socket", .coalescesDeliveriesEarly: "callbacks", .callsPastQueue: "callbacks",
        .callsQueued: "callbacks", .forgetsTurn: "callbacks", .keepsNoSpares: "rules", .withdrawsFirst: "rules",
        .narrowsEarly: "rules", .confirmsNotWide: "rules", .registersOnce: "bus",
        .keepsOldNames: "names on another bus", .forgetsPrefixes: "prefix on another bus", .ignoresExempt: "exempt",
        .forgetsAnswer: "exempt", .forgetsSuperseded: "superseded", .forgetsProcess: "cut",
        .launcherTellsNothing: "launch", .launcherMissesPosts: "launch away", .relayConfirmsFirst: "relay",
        .relayOvertakesPosts: "relay in the background", .relayAnswersEarly: "relay in the background",
        .relayOvertakesLine: "relay in the background",
        .relayWaitsForSilent: "relay", .napsAtOnce: "naps", .ignoresUse: "naps in use", .keepsNappers: "naps",
        .forgetsNappers: "naps without agent",
    ]
}
