// SPDX-License-Identifier: Apache-2.0

import Simulation
import TestSupport
import Testing

/// A few histories of the lifecycle protocol; `make simulate` runs many.
///
/// They run in processes of their own, in which sets have the same order each time, or a seed would not be a test case.
@Suite struct SimulationTests {
    private func simulate(_ arguments: String...) throws -> CommandResult {
        // It would set this and begin again.
        let environment = ["SWIFT_DETERMINISTIC_HASHING": "1"]
        return try run(
            productPath("simulate"),
            arguments + ["--threads", "1"],
            environment: environment,
            timeout: .patience
        )
    }

    @Test func `every promise is kept in each of a hundred and fifty histories`() throws {
        let result = try simulate("--count", "150")
        #expect(result.status == 0, "\(result.output)")
    }

    @Test func `what is tolerated is what the documentation says can still happen, row by row`() throws {
        let lines = try readFile(packageFolder + "/Documentation/lifecycle.md").split(separator: "\n")
        let heading = try #require(lines.firstIndex(of: "## What can still happen"))
        let rows = lines[heading...].drop { !$0.hasPrefix("|---") }.dropFirst().prefix { $0.hasPrefix("|") }
        let titles = rows.map { String($0.dropFirst(2).prefix { $0 != "|" }.dropLast()) }
        #expect(titles == Row.allCases.map(\.title))
    }

    @Test func `the documentation says which promise each break breaks`() throws {
        let page = try readFile(packageFolder + "/Tests/Simulation/explored.md")
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") }
        let breaks = Set(rows.flatMap { $0.matches(of: /`([a-z][A-Za-z]+)`/) }.map { String($0.1) })
        let known = Set(Mutation.allCases.map { "\($0)" })
        #expect(breaks == known)
    }

    /// The seeds with which `simulate --mutations` found the breaks that take long to find. If one no longer fails,
    /// others are tried.
    private static let seeds: [Mutation: UInt64] = [
        .gateOpensBeforeRules: 172, .leavesRules: 11_611, .sendsRulesFirst: 2_194, .confirmsUnheld: 2_194,
        .marksAtOnce: 13_104, .neverMarks: 120, .deliversNothing: 120, .confirmsDelivery: 44_597,
        .narrowsFirst: 86_598, .handsBackEarly: 6_888, .forgetsHeldBack: 624, .believesAnyPath: 6_206,
        .ignoresLock: 371, .ignoresFocus: 185, .ignoresEmptyDesktop: 2_235, .ignoresApplication: 185,
        .judgesEveryone: 153, .believesDeadSource: 7_068, .sleepAffectsAll: 1_738, .overridesPerson: 143,
        .saysLockedEarly: 7_068, .insistsOnStates: 1_237, .believesReplaced: 30_613, .ignoresStream: 257,
        .callsQueued: 518, .withdrawsFirst: 9_328, .narrowsEarly: 103_813, .confirmsNotWide: 134,
        .keepsOldNames: 24_010, .refusesUnread: 9_900, .forgetsPrefixes: 876, .forgetsProcess: 410,
        .relayConfirmsFirst: 350,
        .dropsEarly: 65, .forgetsTurn: 69, .callsPastQueue: 69, .forgetsInFlight: 78, .writesAgainLast: 78,
        .forgetsFollowing: 75, .coalescesDeliveriesEarly: 54, .ignoresExempt: 51, .overtakes: 29, .forgetsNames: 43,
        .relayOvertakesPosts: 50, .forgetsThaw: 37, .forgetsStates: 32, .confirmsAtOnce: 30, .deliversTwice: 37,
        .launcherTellsNothing: 47,
    ]

    /// Breaks that too few histories show. Those of a scope show them.
    private static let scopes: [Mutation: String] = [
        .closesBehind: "addition", .parksBehind: "parking held", .napsAtOnce: "naps", .ignoresUse: "naps in use",
        .keepsNappers: "naps", .forgetsNappers: "naps without agent",
        .remembersOwnStates: "states of others", .unsubscribesFirst: "continued in parts",
        .endsStreamEarly: "handed over", .leavesNoMark: "handed over",
    ]

    @Test(arguments: Mutation.allCases)
    func `a broken protocol is found, and the failure is reproduced in fewer steps`(mutation: Mutation) throws {
        if let scope = SimulationTests.scopes[mutation] {
            let result = try simulate("--scope", scope, "--depth-first", "--mutation", "\(mutation)")
            try #require(result.status == 1, "\(mutation.rawValue) is not found")
            #expect(result.output.contains(/\nin [0-9]+ steps: ./))
            return
        }
        let first = SimulationTests.seeds[mutation] ?? 1
        let result = try simulate("--mutation", "\(mutation)", "--first", String(first), "--count", "20000")
        try #require(result.status == 1, "\(mutation.rawValue) is not found")
        // "in 105 steps; in 9: …"
        let line = try #require(result.output.split(separator: "\n").first { $0.hasPrefix("in ") })
        let steps = line.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        #expect(steps.count == 2 && steps[1] <= steps[0] && line.last != " ", "\(line)")
    }
}
