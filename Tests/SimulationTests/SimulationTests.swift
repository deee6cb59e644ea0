// SPDX-License-Identifier: Apache-2.0

import Simulation
import Testing

/// A few histories of the lifecycle protocol; `make simulate` runs many.
@Suite struct SimulationTests {
    @Test func `every promise is kept in each of a thousand histories`() {
        for seed in UInt64(1)...1_000 {
            let history = History.run(seed: seed)
            #expect(history.failure == nil, "seed \(seed): 'make simulate SEED=\(seed)' tells the history")
        }
    }

    @Test(arguments: Mutation.allCases)
    func `a break of the protocol is found, and told in fewer steps`(mutation: Mutation) throws {
        let found = (UInt64(1)...20_000).first { History.run(seed: $0, mutation: mutation).failure != nil }
        let seed = try #require(found, "\(mutation.rawValue) is not found")
        let history = History.run(seed: seed, mutation: mutation, isKept: true)
        let short = history.shortened(mutation: mutation)
        #expect(history.failure != nil && short.failure != nil && short.steps.count <= history.steps.count)
    }
}
