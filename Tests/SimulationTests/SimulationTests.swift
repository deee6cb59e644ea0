// SPDX-License-Identifier: Apache-2.0

import Glibc
import Simulation
import Testing

/// A few histories of the lifecycle protocol; `make simulate` runs many.
@Suite struct SimulationTests {
    @Test func `every promise is kept in each of a thousand histories`() {
        for seed in UInt64(1)...1_000 {
            let history = History.run(seed: seed)
            #expect(history.failure == nil, "seed \(seed): 'make simulate SEED=\(seed)' prints the history")
        }
    }

    @Test func `what is tolerated is what the documentation says can still happen, row by row`() throws {
        let folder = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let file = try #require(fopen("/" + folder + "/Documentation/lifecycle.md", "r"))
        defer { fclose(file) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&piece, 1, piece.count, file), count > 0 { text += piece[..<count] }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        let heading = try #require(lines.firstIndex(of: "## What can still happen"))
        let rows = lines[heading...].drop { !$0.hasPrefix("|---") }.dropFirst().prefix { $0.hasPrefix("|") }
        let titles = rows.map { String($0.dropFirst(2).prefix { $0 != "|" }.dropLast()) }
        #expect(titles == Row.allCases.map(\.title))
    }

    /// The seeds with which `simulate --mutations` found the breaks that take long to find. If one no longer fails,
    /// others are tried.
    private static let seeds: [Mutation: UInt64] = [
        .gateOpensBeforeRules: 803, .marksAtOnce: 3_911, .confirmsDelivery: 4_976, .narrowsFirst: 4_380,
        .handsBackEarly: 2_366, .ignoresApplication: 3_753, .judgesEveryone: 1_334, .sleepAffectsAll: 1_594,
        .insistsOnStates: 1_751, .believesReplaced: 1_460, .forgetsThaw: 516,
    ]

    @Test(arguments: Mutation.allCases)
    func `a broken protocol is found, and the failure is reproduced in fewer steps`(mutation: Mutation) throws {
        let known = SimulationTests.seeds[mutation].map { [$0] } ?? []
        let found = (known + Array(1...20_000)).first { History.run(seed: $0, mutation: mutation).failure != nil }
        let seed = try #require(found, "\(mutation.rawValue) is not found")
        let history = History.run(seed: seed, mutation: mutation, isKept: true)
        let short = history.shortened(mutation: mutation)
        #expect(history.failure != nil && short.failure != nil && short.steps.count <= history.steps.count)
    }
}
