// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

// What surrounds the protocol.
extension Scope {
    /// The desktop changes the states of programs.
    static let ofTheDesktop = [
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
    ]

    /// Programs are started or hear by a relay, and something is scarce.
    static let ofTheRest = [
        Scope(
            "launch",
            .small,
            "a program is started for two names, which fails once, and exits",
            launches: .init(posts: 2, failures: 1, exits: 1)
        ),
        Scope(
            "launch away",
            .medium,
            "the service manager goes away and comes back while a program is started for two names, and exits",
            launches: .init(posts: 2, failures: 0, exits: 1, departures: 1)
        ),
        Scope(
            "launch again",
            .medium,
            "three posts, and the program exits twice",
            launches: .init(posts: 3, failures: 1, exits: 2)
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
            "rules",
            .large,
            "the bus allows fewer rules than an observer needs for some time",
            setting([0], [(0, 0), (0, 1), (0, 2)], [0, 2]) { $0.scarcity.rules = 6 },
            [
                Move(inOrder: .observe(0, 3), .observe(0, 4), .cancel(0), .cancel(1), .cancel(2)), Move(1, post(2)),
                Move(1, change(.background)),
            ]
        ),
    ]
}
