// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

/// A small world, and what may happen in it. All of its histories are explored.
package struct Scope: Sendable {
    /// Something that may happen at any time, so often at most: one of these steps each time.
    struct Move: Sendable {
        private let steps: [Step]
        let limit: UInt8
        /// Whether they happen one after the other, and not in any order.
        private let areInOrder: Bool

        init(_ limit: UInt8, _ steps: Step...) {
            self.steps = steps
            self.limit = limit
            areInOrder = false
        }

        init(inOrder steps: Step...) {
            self.steps = steps
            limit = UInt8(steps.count)
            areInOrder = true
        }

        var all: ArraySlice<Step> { steps[...] }

        /// What may happen when it has happened so often.
        func steps(after spent: UInt8) -> ArraySlice<Step> {
            if spent >= limit { return [] }
            return areInOrder ? steps[Int(spent)...Int(spent)] : steps[...]
        }
    }

    /// How long it takes: a second or less, some seconds, or minutes.
    package enum Size: Int, Sendable { case small, medium, large }

    package let name: String
    package let size: Size
    /// What is explored, for display.
    package let summary: String
    /// The launcher has a model of its own.
    private var launch: LaunchScene.Moves?
    /// So does the relay.
    private var relay: RelayingScene.Moves?
    var setting: World.Setting
    /// What happens first. It comes to rest, unless programs are parked.
    var prelude: [Step] = [.rest(1)]
    let moves: [Move]

    init(
        _ name: String,
        _ size: Size,
        _ summary: String,
        _ setting: World.Setting,
        prelude: [Step] = [.rest(1)],
        _ moves: [Move]
    ) {
        self.name = name
        self.size = size
        self.summary = summary
        self.setting = setting
        self.prelude = prelude
        self.moves = moves
    }
}

extension Scope {
    /// Explores all of its histories.
    ///
    /// - Parameters:
    ///   - limit: how many states may be seen.
    ///   - isDepthFirst: see `Explorer`.
    package func explore(_ mutation: Mutation?, limit: Int, threads: Int, isDepthFirst: Bool) -> Explorer.Outcome {
        if let launch {
            return Explorer.explore(limit: limit, threads: threads, isDepthFirst: isDepthFirst) { isNoted in
                LaunchScene(launch, mutation: mutation, isNoted: isNoted)
            }
        }
        if let relay {
            return Explorer.explore(limit: limit, threads: threads, isDepthFirst: isDepthFirst) { isNoted in
                RelayingScene(relay, mutation: mutation, isNoted: isNoted)
            }
        }
        return Explorer.explore(limit: limit, threads: threads, isDepthFirst: isDepthFirst) { [self] isNoted in
            Situation(self, mutation: mutation, isNoted: isNoted)
        }
    }

    /// What can happen to programs other than by messages when the moves were made so often.
    func calm(after spent: SIMD16<UInt8>) -> Calm {
        var calm = Calm()
        if freezesProcesses || setting.naps != nil {
            (calm.isAgentUndisturbed, calm.areObserversUndisturbed) = (false, false)
        }
        for number in moves.indices {
            for step in moves[number].steps(after: spent[number]) {
                switch step {
                case .killAgent, .endAgent, .startAgent, .replaceAgent, .cutPredecessor, .endBus:
                    (calm.keepsAgent, calm.isAgentUndisturbed) = (false, false)
                case .stop, .kill, .cut, .time: calm.isAgentUndisturbed = false
                default: break
                }
                switch step {
                case .post, .change, .changeOne, .changeApplication, .release, .releaseApplication, .releaseAll,
                    .killAgent, .endAgent, .startAgent, .replaceAgent, .cutPredecessor:
                    break
                default: calm.areObserversUndisturbed = false
                }
            }
        }
        return calm
    }

    private var freezesProcesses: Bool {
        moves.contains { move in
            move.all.contains { step in
                switch step {
                case .change(_, _, let freezes, _), .changeApplication(_, let freezes, _): freezes
                default: false
                }
            }
        }
    }
}

/// What can no longer happen. The steps of a program that nothing but messages can reach may be taken at once if they
/// promise nothing: any other step may as well come after them.
struct Calm {
    /// Whether the agent goes on.
    var keepsAgent = true
    /// Whether it learns nothing but by the bus.
    var isAgentUndisturbed = true
    /// Whether observers are not stopped, cut off or told anything by their programs.
    var areObserversUndisturbed = true
}

extension World.Setting {
    /// Observers in processes of their own, or together, and an agent; nothing is scarce, and none follows the desktop.
    init(processes: [Int], _ registrations: [(Int, Int)], names: [Int]) {
        self.init(
            processes: processes,
            registrations: registrations,
            names: names,
            subjects: names,
            busStartsAgents: false,
            beginsWithAgent: true,
            prefixRules: 128,
            follower: nil,
            applications: [],
            focusFollowers: .asking,
            sessionFollowers: .asking,
            sleepFollowers: .nobody,
            pendingLimit: nil,
            encodes: false
        )
        hasDesktop = false
    }
}

extension Scope {
    /// A name that counts from whomever it comes, and another one.
    static let (name, other) = (2, 3)

    static func change(_ state: LifecycleState, _ process: Int = 0, freezes: Bool = false, by person: Int = 0)
        -> Step
    {
        .change(process: process, state, freezes: freezes, by: person)
    }

    static let post = Step.post(poster: 0, name: name)

    static func setting(
        _ processes: [Int],
        _ registrations: [(Int, Int)],
        _ names: [Int],
        _ change: (inout World.Setting) -> Void = { _ in }
    ) -> World.Setting {
        var setting = World.Setting(processes: processes, registrations, names: names)
        change(&setting)
        return setting
    }

    /// The agent does one thing at a time where it otherwise does hundreds at once.
    static func doesOneAtOnce(_ setting: inout World.Setting) {
        (setting.proxyParts.request, setting.proxyParts.allowance, setting.proxyParts.turn) = (1, 1, 1)
        setting.callLimit = 1
    }

    /// The first process is stopped, and the agent, whose connection is the fifth, has parked it.
    static let parked: [Step] =
        [.rest(1), .stop(process: 0, tears: false), .notice(0)]
        + repeatElement([.news, .route(4), .agent, .stream(0)], count: 40).joined()

    /// An application naps.
    static func nap(_ setting: inout World.Setting, _ depth: NapRule.Depth, heedsSound: Bool) {
        setting.hasDesktop = true
        setting.applications = [0]
        setting.naps = NapSetting(depth: depth, heedsSound: heedsSound)
    }

    static func focus(_ process: Int) -> Step { .focus(source: 0, .process(process)) }

    /// One of the launcher.
    init(_ name: String, _ size: Size, _ summary: String, launches moves: LaunchScene.Moves) {
        self.init(name, size, summary, World.Setting(processes: [], [], names: []), [])
        launch = moves
    }

    /// One of the relay.
    init(_ name: String, _ size: Size, _ summary: String, relays moves: RelayingScene.Moves) {
        self.init(name, size, summary, World.Setting(processes: [], [], names: []), [])
        relay = moves
    }

    static func post(_ name: Int, by poster: Int = 0) -> Step { .post(poster: poster, name: name) }

    package static let all = ofChanges + ofStops + ofAgents + ofSuccessors + ofBuses + ofTheDesktop + ofTheRest
}
