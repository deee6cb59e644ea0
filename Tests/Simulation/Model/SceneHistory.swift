// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Histories of what is not part of the world: the launcher and the relay. A seed draws one of each.
package struct SceneHistory: Sendable {
    package let title: String
    package let steps: Int
    /// What went wrong.
    package let failure: String
    package let notes: [String]

    /// - Returns: the first that breaks a promise.
    package static func failing(seed: UInt64, mutation: Mutation?, isNoted: Bool = false) -> SceneHistory? {
        var random = SplitMix(seed: seed)
        var launches = LaunchScene.Moves(posts: 1 + random.below(12), failures: random.below(2), exits: random.below(6))
        launches.departures = Int(seed % 3)
        let launch = LaunchScene(launches, mutation: mutation, isNoted: isNoted)
        if let failing = failing("launcher", launch, &random) { return failing }
        var moves = RelayingScene.Moves(posts: 1 + random.below(12), otherPosts: random.below(6))
        moves.changes = (0..<random.below(5)).map { _ in [.foreground, .background, .suspended][random.below(3)] }
        (moves.additions, moves.questions, moves.silences) = (random.below(2), random.below(3), random.below(2))
        return failing("relay", RelayingScene(moves, mutation: mutation, isNoted: isNoted), &random)
    }

    private static func failing(_ title: String, _ scene: some Explorable, _ random: inout SplitMix) -> SceneHistory? {
        var scene = scene
        var steps = 0
        while scene.failure == nil {
            let choices = scene.choices
            if choices.isEmpty { return nil }
            steps += scene.take(choices[random.below(choices.count)])
        }
        return SceneHistory(title: title, steps: steps, failure: scene.failure ?? "", notes: scene.notes)
    }
}
