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
    private var launch: (posts: Int, failures: Int, exits: Int)?
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
        if let (posts, failures, exits) = launch {
            return Explorer.explore(limit: limit, threads: threads, isDepthFirst: isDepthFirst) { isNoted in
                LaunchScene(posts: posts, failures: failures, exits: exits, mutation: mutation, isNoted: isNoted)
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
                case .killAgent, .endAgent, .startAgent, .endBus:
                    (calm.keepsAgent, calm.isAgentUndisturbed) = (false, false)
                case .stop, .kill, .cut, .time: calm.isAgentUndisturbed = false
                default: break
                }
                switch step {
                case .post, .change, .changeOne, .changeApplication, .release, .releaseApplication, .releaseAll,
                    .killAgent,
                    .endAgent, .startAgent:
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

/// What can no longer happen. The steps of a program that nothing but messages can reach may be taken at once if nobody is
/// promised anything by them: any other step may as well come after them.
struct Calm {
    /// Whether the agent goes on.
    var keepsAgent = true
    /// Whether it learns nothing but by the bus.
    var isAgentUndisturbed = true
    /// Whether observers are not stopped, cut off or told anything by their programs.
    var areObserversUndisturbed = true
}

extension World.Setting {
    /// Observers in processes of their own, or together, and an agent; nothing is scarce, and nobody follows the desktop.
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
    private static let (name, other) = (2, 3)

    private static func change(_ state: LifecycleState, _ process: Int = 0, freezes: Bool = false, by person: Int = 0)
        -> Step
    {
        .change(process: process, state, freezes: freezes, by: person)
    }

    private static let post = Step.post(poster: 0, name: name)

    private static func setting(
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
    private static func doesOneAtOnce(_ setting: inout World.Setting) {
        (setting.proxyParts.request, setting.proxyParts.allowance, setting.proxyParts.turn) = (1, 1, 1)
        setting.callLimit = 1
    }

    /// The first process is stopped, and the agent, whose connection is the fifth, has parked it.
    private static let parked: [Step] =
        [.rest(1), .stop(process: 0, tears: false), .notice(0)]
        + repeatElement([.news, .route(4), .agent, .stream(0)], count: 40).joined()

    /// An application naps.
    private static func nap(_ setting: inout World.Setting, _ depth: NapRule.Depth, heedsSound: Bool) {
        setting.hasDesktop = true
        setting.applications = [0]
        setting.naps = NapSetting(depth: depth, heedsSound: heedsSound)
    }

    private static func focus(_ process: Int) -> Step { .focus(source: 0, .process(process)) }

    /// One of the launcher.
    private init(
        _ name: String,
        _ size: Size,
        _ summary: String,
        launchesFor posts: Int,
        failures: Int,
        exits: Int
    ) {
        self.init(name, size, summary, World.Setting(processes: [], [], names: []), [])
        launch = (posts, failures, exits)
    }

    /// One of the relay.
    private init(_ name: String, _ size: Size, _ summary: String, relays moves: RelayingScene.Moves) {
        self.init(name, size, summary, World.Setting(processes: [], [], names: []), [])
        relay = moves
    }

    private static func post(_ name: Int, by poster: Int = 0) -> Step { .post(poster: poster, name: name) }

    package static let all = [
        Scope(
            "suspend",
            .small,
            "an observer is suspended and resumed, and posted to",
            setting([0], [(0, name)], [name]),
            [Move(2, post), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "names",
            .large,
            "an observer adds a name and cancels one while it is suspended and resumed",
            setting([0], [(0, name), (0, name)], [name, other]),
            [
                Move(1, post(name)), Move(1, post(other)), Move(1, .observe(0, other)), Move(1, .cancel(0)),
                Move(inOrder: change(.suspended), change(.foreground)),
            ]
        ),
        Scope(
            "persons",
            .medium,
            "two persons ask for three states of an observer",
            setting([0], [(0, name)], [name]) { $0.applications = [0] },
            [
                Move(1, post), Move(inOrder: change(.suspended), change(.background)),
                Move(inOrder: .changeApplication(.suspended, freezes: false, by: 1), .releaseAll(by: 1)),
            ]
        ),
        Scope(
            "superseded",
            .small,
            "a person asks for three states of an observer, one after the other",
            setting([0], [(0, name)], [name]),
            [Move(inOrder: change(.suspended), change(.background), change(.foreground))]
        ),
        Scope(
            "two",
            .medium,
            "two observers of a name are suspended by two persons, and one is resumed",
            setting([0, 1], [(0, name), (1, name)], [name]),
            [
                Move(1, post), Move(inOrder: change(.suspended), change(.foreground)),
                Move(1, change(.suspended, 1, by: 1)),
            ]
        ),
        Scope(
            "freeze",
            .large,
            "an observer is frozen and resumed while it adds a name",
            setting([0], [(0, name)], [name, other]),
            [
                Move(1, post), Move(inOrder: change(.suspended, freezes: true), change(.foreground, by: 1)),
                Move(1, .observe(0, other)),
            ]
        ),
        Scope(
            "stop",
            .large,
            "an observer is stopped and continued, parked on the way, while it is changed",
            setting([0], [(0, name)], [name]),
            [Move(1, post), Move(1, .stop(process: 0, tears: false)), Move(1, change(.suspended), change(.background))]
        ),
        Scope(
            "stop and add",
            .large,
            "an observer is stopped and continued, parked on the way, while it is suspended and adds a name",
            setting([0], [(0, name)], [name, other]),
            [Move(1, .observe(0, other)), Move(1, .stop(process: 0, tears: false)), Move(1, change(.suspended))]
        ),
        Scope(
            "stopped in the background",
            .large,
            "an observer in the background is to enter the foreground, is stopped, parked on the way, and suspended",
            setting([0], [(0, name)], [name]),
            prelude: [.rest(1), change(.background), .rest(2)],
            [
                Move(1, post), Move(1, .stop(process: 0, tears: false)),
                Move(inOrder: change(.foreground), change(.suspended)),
            ]
        ),
        Scope(
            "parking without agent",
            .large,
            "the agent dies while an observer is stopped and continued, parked on the way, and another is started",
            setting([0], [(0, name)], [name]),
            [Move(1, post), Move(1, .stop(process: 0, tears: false)), Move(inOrder: .killAgent, .startAgent)]
        ),
        Scope(
            "two without agent",
            .large,
            "the agent dies while one of two observers of a name is suspended, and another is started",
            setting([0, 1], [(0, name), (1, name)], [name]),
            [
                Move(1, post), Move(inOrder: change(.suspended), change(.foreground)),
                Move(inOrder: .killAgent, .startAgent),
            ]
        ),
        Scope(
            "cut",
            .large,
            "an observer is cut off by the bus while it is suspended, or killed",
            setting([0, 1], [(0, name), (1, name)], [name]),
            [
                Move(1, post), Move(1, change(.suspended)), Move(1, .cut(observer: 0, readable: 0)),
                Move(1, .kill(process: 1)),
            ]
        ),
        Scope(
            "prefixes",
            .medium,
            "two observers of prefixes, one of which is suspended, at an agent that has a rule of its own for one prefix",
            setting([0, 1], [(0, 4), (1, 5)], [2, 1]) { $0.prefixRules = 1 },
            [
                Move(1, post(2)), Move(1, change(.suspended)), Move(1, change(.suspended, 1)),
                Move(1, change(.foreground)),
            ]
        ),
        Scope(
            "prefixes at once",
            .small,
            "an observer of three prefixes is suspended and resumed, at an agent that has rules of their own for two",
            setting([0], [(0, 4), (0, 5), (0, 6)], [2, 1]) { $0.prefixRules = 2 },
            [Move(1, post(2)), Move(1, post(1)), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "prefixes in parts",
            .medium,
            "the same, while it cancels one, at an agent that does one thing at once",
            setting([0], [(0, 4), (0, 5), (0, 6)], [2]) { setting in
                doesOneAtOnce(&setting)
                setting.prefixRules = 2
            },
            [Move(1, post(2)), Move(1, .cancel(0)), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "suspended in parts",
            .medium,
            "two observers of three names are suspended, and one is resumed, by an agent that does one thing at once",
            setting([0, 1], [(0, name), (0, other), (0, 0), (1, name), (1, other), (1, 0)], [name], doesOneAtOnce),
            [Move(1, post), Move(inOrder: change(.suspended), change(.foreground)), Move(1, change(.suspended, 1))]
        ),
        Scope(
            "limit",
            .small,
            "names wait for an observer, and more are posted than there is room for",
            setting([0], [(0, name), (0, other)], [name, other]) { $0.pendingLimit = 2 },
            [Move(1, post(name)), Move(1, post(other)), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "room",
            .small,
            "two names are posted while an observer is suspended, and there is room for both",
            setting([0], [(0, name), (0, other)], [name, other]),
            [Move(1, post(name)), Move(1, post(other)), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "owner",
            .small,
            "a name counts only from its owner, and the observer is suspended and resumed",
            setting([0], [(0, 1)], [1]),
            [Move(1, post(1)), Move(1, post(1, by: 1)), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "order",
            .small,
            "a poster posts a name that counts only from its owner, and then another",
            setting([0], [(0, 1), (0, 2)], [1, 2]),
            [Move(inOrder: post(1), post(2), post(1, by: 1))]
        ),
        Scope(
            "reserved",
            .medium,
            "a name is reserved, somebody posts it by another path, and the agent hears every path",
            setting([0], [(0, 0), (0, 4), (0, 5)], [0]) { setting in
                setting.reservesNames = true
                setting.prefixRules = 1
            },
            [Move(1, post(0, by: 1)), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "addition",
            .medium,
            "an observer adds a name while it is suspended and resumed",
            setting([0], [(0, name)], [name, other]),
            [
                Move(1, post(other)), Move(1, .observe(0, other)),
                Move(inOrder: change(.suspended), change(.foreground)),
            ]
        ),
        Scope(
            "parking",
            .large,
            "an observer is stopped and continued, parked on the way, while it adds a name",
            setting([0], [(0, name)], [name, other]),
            [Move(1, post(other)), Move(1, .observe(0, other)), Move(1, .stop(process: 0, tears: false))]
        ),
        Scope(
            "parking held",
            .medium,
            "an observer is stopped while it adds a name, and the agent holds the other one for another observer",
            setting([0, 1], [(0, name), (1, name)], [name, other]),
            prelude: [.rest(1), change(.suspended, 1), .rest(2)],
            [Move(1, .observe(0, other)), Move(1, .stop(process: 0, tears: false))]
        ),
        Scope(
            "stopped",
            .small,
            "an observer is stopped and continued, parked on the way, and posted to",
            setting([0], [(0, name)], [name]),
            [Move(1, post), Move(1, .stop(process: 0, tears: false))]
        ),
        Scope(
            "stopped in parts",
            .medium,
            "an observer of three names is stopped and continued, parked on the way, by an agent that does one thing at once",
            setting([0], [(0, name), (0, other), (0, 0)], [name], doesOneAtOnce),
            [Move(1, post), Move(1, .stop(process: 0, tears: false))]
        ),
        // While the new connection waits for the rule of the name that it adds, there is room for a request of another one:
        // were the rules of the previous one given up by turns with it, the prefix would be without a rule for a while.
        Scope(
            "continued in parts",
            .small,
            "a parked observer of a name and a prefix continues and adds a name, at an agent that does one thing at once",
            setting([0], [(0, other), (0, 6)], [name, other]) { setting in
                doesOneAtOnce(&setting)
                setting.proxyParts.allowance = 2
            },
            prelude: parked + [.go(process: 0), .observe(0, 0)],
            [Move(1, post(name), post(other))]
        ),
        Scope(
            "delivery",
            .medium,
            "an observer is stopped and continued while it is handed a name that was posted while it was suspended",
            setting([0], [(0, name)], [name]),
            prelude: [.rest(1), change(.suspended), .rest(2), post, .rest(3)],
            [Move(1, change(.foreground)), Move(1, .stop(process: 0, tears: false))]
        ),
        Scope(
            "held back",
            .medium,
            "an observer is resumed, or cut off, while it is not known who posted a name",
            setting([0], [(0, 1)], [1]),
            prelude: [.rest(1), change(.suspended), .rest(2)],
            [Move(1, post(1)), Move(1, change(.foreground)), Move(1, .cut(observer: 0, readable: 2))]
        ),
        Scope(
            "cut off",
            .small,
            "an observer is cut off while it is not known who posted a name",
            setting([0], [(0, 1)], [1]),
            [Move(1, post(1)), Move(1, .cut(observer: 0, readable: 3))]
        ),
        Scope(
            "held back and stopped",
            .small,
            "an observer is stopped and continued, parked on the way, while it is not known who posted a name",
            setting([0], [(0, 1)], [1]),
            [Move(1, post(1)), Move(1, .stop(process: 0, tears: false))]
        ),
        Scope(
            "canceling",
            .large,
            "an observer cancels a name when it has nearly as many as the bus allows, and is in the background",
            setting([0], [(0, name), (0, other)], [name, other]),
            [
                Move(1, .cancel(0)), Move(inOrder: change(.background), change(.foreground)), Move(1, .killAgent),
                Move(1, .startAgent),
            ]
        ),
        Scope(
            "states",
            .small,
            "two observers set the state of a name, and the agent is replaced",
            setting([0, 1], [(0, name), (1, name)], [name]),
            [
                Move(inOrder: .setNameState(0, name: name, value: 1)),
                Move(inOrder: .setNameState(1, name: name, value: 2)), Move(1, .startAgent),
            ]
        ),
        Scope(
            "states of others",
            .small,
            "whoever has set the state of a name ends, and the agent is replaced",
            setting([0, 1], [(0, name), (1, name)], [name]),
            [
                Move(inOrder: .setNameState(0, name: name, value: 1)), Move(1, .kill(process: 0)),
                Move(1, .startAgent),
            ]
        ),
        Scope(
            "successors",
            .medium,
            "the state of a name is set while the agent is replaced twice",
            setting([0], [(0, name)], [name]),
            [Move(1, .setNameState(0, name: name, value: 1)), Move(2, .startAgent)]
        ),
        Scope(
            "launch",
            .small,
            "a program is started for two names, which fails once, and exits",
            launchesFor: 2,
            failures: 1,
            exits: 1
        ),
        Scope(
            "launch again",
            .medium,
            "three posts, and the program exits twice",
            launchesFor: 3,
            failures: 1,
            exits: 2
        ),
        Scope(
            "relay",
            .large,
            "a program behind the relay is suspended, resumed and adds a name; another falls silent",
            relays: .init(
                posts: 2,
                otherPosts: 1,
                changes: [.suspended, .foreground],
                additions: 1,
                questions: 1,
                silences: 1
            )
        ),
        Scope(
            "relay in the background",
            .medium,
            "a program behind the relay goes into the background and comes back",
            relays: .init(posts: 3, changes: [.background, .foreground], questions: 1)
        ),
        Scope(
            "lock",
            .large,
            "the screen is locked and unlocked, and one of two observers follows the desktop",
            setting([0, 1], [(0, name), (1, name)], [name]) { setting in
                setting.hasDesktop = true
                setting.follower = 0
            },
            [Move(1, post), Move(inOrder: .lock(true), .lock(false), .lock(true)), Move(1, .sleep(true))]
        ),
        Scope(
            "nap",
            .small,
            "the focus leaves an observer, is nowhere, and comes back, with a post between",
            setting([0, 1], [(0, name)], [name]) { setting in
                setting.hasDesktop = true
                setting.follower = 0
            },
            [
                Move(2, post),
                Move(
                    inOrder: .focus(source: 0, .process(1)),
                    .focus(source: 0, .nobody),
                    .focus(source: 0, .process(0))
                ),
            ]
        ),
        Scope(
            "naps",
            .small,
            "an application loses the focus and is stopped, a name is posted, and it has the focus again",
            setting([0], [(0, name)], [name]) { nap(&$0, .frozen, heedsSound: false) },
            [Move(1, post), Move(inOrder: focus(0), .focus(source: 0, .nobody), focus(0))]
        ),
        Scope(
            "naps in use",
            .small,
            "an application that plays sound loses the focus, stops playing, and plays again",
            setting([0], [(0, name)], [name]) { nap(&$0, .suspended, heedsSound: true) },
            [
                Move(1, post), Move(inOrder: .sound(true), .sound(false), .sound(true)),
                Move(inOrder: focus(0), .focus(source: 0, .nobody)),
            ]
        ),
        Scope(
            "naps without agent",
            .small,
            "the agent is killed while an application is stopped, and another is started",
            setting([0], [(0, name)], [name]) { nap(&$0, .frozen, heedsSound: false) },
            [
                Move(inOrder: focus(0), .focus(source: 0, .nobody)), Move(1, .killAgent), Move(1, .startAgent),
            ]
        ),
        Scope(
            "sources",
            .medium,
            "two sources know of the focus, one of some processes only, and one fails; two processes are an application",
            setting([0, 1], [(0, name), (1, name)], [name]) { setting in
                setting.hasDesktop = true
                setting.applications = [0, 1]
                setting.focusFollowers = .everyone
            },
            [
                Move(inOrder: .focus(source: 0, .process(0)), .focus(source: 0, .nobody), .focus(source: 0, .unknown)),
                Move(inOrder: .focus(source: 1, .among(nil, Desktop.Processes([1])))),
            ]
        ),
        Scope(
            "decider",
            .medium,
            "a person and the desktop disagree about an observer that begins to follow it",
            setting([0], [(0, name)], [name]) { $0.hasDesktop = true },
            [Move(1, change(.suspended)), Move(1, .lock(true)), Move(1, .follow(0, true)), Move(1, post)]
        ),
        Scope(
            "exempt",
            .small,
            "the configuration exempts an application that follows the desktop",
            setting([0], [(0, name)], [name]) { setting in
                setting.hasDesktop = true
                (setting.applications, setting.exempts) = ([0], true)
                setting.follower = 0
            },
            [Move(1, change(.suspended)), Move(1, .lock(true)), Move(1, .report(0, .background)), Move(1, post)]
        ),
        Scope(
            "socket",
            .medium,
            "a poster's socket holds one message; it is disconnected, and exits",
            setting([0], [(0, name), (0, other)], [name, other]) { $0.scarcity.socket = 1 },
            [
                Move(2, post(name)), Move(2, post(other)), Move(1, .cutPoster(0)), Move(1, .endPoster(0)),
            ]
        ),
        Scope(
            "callbacks",
            .small,
            "a callback takes long, and another registration of the name is canceled",
            setting([0], [(0, name), (0, name), (0, other)], [name, other]) { $0.scarcity.slowCallbacks = true },
            [Move(2, post(name)), Move(2, post(other)), Move(1, .slow(observer: 0)), Move(1, .cancel(1))]
        ),
        Scope(
            "rules",
            .large,
            "the bus allows fewer rules than an observer needs for some time",
            setting([0], [(0, 0), (0, 1), (0, 2)], [0, 2]) { $0.scarcity.rules = 6 },
            [
                Move(inOrder: .observe(0, 3), .observe(0, 4), .cancel(0), .cancel(1), .cancel(2)), Move(1, post(2)),
                Move(1, change(.background)),
            ]
        ),
        Scope(
            "bus",
            .small,
            "the bus ends and another is started",
            setting([0], [(0, name), (0, 5)], [name, 1]) { $0.scarcity.restartsBus = true },
            [Move(1, post), Move(1, .endBus(readable: 1)), Move(1, .startAgent)]
        ),
        Scope(
            "prefix on another bus",
            .small,
            "the bus ends while an observer of a prefix suspends itself",
            setting([0], [(0, 5)], [1]) { $0.scarcity.restartsBus = true },
            [Move(1, .report(0, .suspended)), Move(1, .endBus(readable: 1)), Move(1, .startAgent)]
        ),
        Scope(
            "names on another bus",
            .medium,
            "another bus gives a connection the name that another one of its process had before",
            setting([0, 0], [(0, name), (1, other)], [name, other]) { setting in
                setting.scarcity.restartsBus = true
                setting.beginsWithAgent = false
            },
            prelude: [.rest(1), .startAgent, .rest(2)],
            [Move(1, .endBus(readable: 0)), Move(1, .startAgent)]
        ),
        Scope(
            "agent",
            .large,
            "the agent dies while an observer is suspended and resumed, and another is started",
            setting([0], [(0, name)], [name]),
            [
                Move(1, post), Move(inOrder: change(.suspended), change(.foreground)), Move(1, .killAgent),
                Move(1, .startAgent),
            ]
        ),
        Scope(
            "background",
            .large,
            "the same in the background, with two posts",
            setting([0], [(0, name)], [name]),
            [
                Move(2, post), Move(inOrder: change(.background), change(.foreground)), Move(1, .killAgent),
                Move(1, .startAgent),
            ]
        ),
        Scope(
            "restart",
            .medium,
            "the bus ends while an observer is changed",
            setting([0], [(0, name)], [name]) { $0.scarcity.restartsBus = true },
            [
                Move(1, post), Move(1, change(.suspended), change(.background)), Move(1, .endBus(readable: 1)),
                Move(1, .startAgent),
            ]
        ),
    ]
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
        .believesReplaced: "successors", .callsOne: "callbacks", .callsCancelled: "callbacks", .forgetsThaw: "freeze",
        .ignoresStream: "stopped", .coalescesEarly: "socket", .forgetsInFlight: "socket", .writesAgainLast: "socket",
        .exitsAtOnce: "socket", .coalescesDeliveriesEarly: "callbacks", .callsPastQueue: "callbacks",
        .callsQueued: "callbacks", .forgetsTurn: "callbacks", .keepsNoSpares: "rules", .withdrawsFirst: "rules",
        .narrowsEarly: "rules", .confirmsNotWide: "rules", .registersOnce: "bus",
        .keepsOldNames: "names on another bus", .forgetsPrefixes: "prefix on another bus", .ignoresExempt: "exempt",
        .forgetsAnswer: "exempt", .forgetsSuperseded: "superseded", .forgetsProcess: "cut",
        .launcherTellsNothing: "launch", .relayConfirmsFirst: "relay",
        .relayOvertakesPosts: "relay in the background", .relayAnswersEarly: "relay in the background",
        .relayWaitsForSilent: "relay", .napsAtOnce: "naps", .ignoresUse: "naps in use", .keepsNappers: "naps",
        .forgetsNappers: "naps without agent",
    ]
}
