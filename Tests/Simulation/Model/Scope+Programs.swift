// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

// What happens to programs.
extension Scope {
    /// Their states change, and what they observe.
    static let ofChanges = [
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
    ]

    /// They are stopped, and lose their connections.
    static let ofStops = [
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
    ]
}
