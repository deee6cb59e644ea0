// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

// Agents follow one another, and buses.
extension Scope {
    /// Agents die, and are replaced.
    static let ofAgents = [
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
            "parking without agent",
            .large,
            "the agent dies while an observer is stopped and continued, parked on the way, and another is started",
            setting([0], [(0, name)], [name]),
            [Move(1, post), Move(1, .stop(process: 0, tears: false)), Move(inOrder: .killAgent, .startAgent)]
        ),
    ]

    /// Agents hand over what they know.
    static let ofSuccessors = [
        Scope(
            "handed over",
            .small,
            "an agent hands over an observer of a prefix and a name, and it is resumed",
            setting([0], [(0, 4), (0, other)], [name]),
            prelude: [.rest(1), change(.suspended), .rest(2)],
            [Move(2, post), Move(1, .replaceAgent), Move(1, change(.foreground))]
        ),
        Scope(
            "handed over while it changes",
            .medium,
            "an agent hands over while an observer is suspended and resumed",
            setting([0], [(0, 4)], [name]),
            [Move(1, post), Move(1, .replaceAgent), Move(inOrder: change(.suspended), change(.foreground))]
        ),
        Scope(
            "handed over and lost",
            .large,
            "an agent hands over, and it or the next one dies in the middle of that",
            setting([0], [(0, 4)], [name]),
            prelude: [.rest(1), change(.suspended), .rest(2)],
            [
                Move(1, post), Move(1, .replaceAgent), Move(1, .killAgent, .cutPredecessor(readable: 1)),
                Move(1, .startAgent),
            ]
        ),
        Scope(
            "handed over twice",
            .medium,
            "an agent hands over, and the next one does the same before everybody has registered",
            setting([0], [(0, 4)], [name]),
            prelude: [.rest(1), change(.suspended), .rest(2)],
            [Move(1, post), Move(2, .replaceAgent), Move(1, change(.foreground))]
        ),
        Scope(
            "handed over and adding",
            .medium,
            "an observer adds a name while an agent hands it over, and is resumed",
            setting([0], [(0, name)], [name, other]),
            prelude: [.rest(1), change(.suspended), .rest(2)],
            [
                Move(1, post(other)), Move(1, .replaceAgent), Move(1, .observe(0, other)),
                Move(1, change(.foreground)),
            ]
        ),
        Scope(
            "handed over frozen",
            .medium,
            "an agent hands over a frozen observer, and it is resumed, frozen again, or ends",
            setting([0], [(0, 4)], [name]),
            prelude: [.rest(1), change(.suspended, freezes: true), .rest(2)],
            [
                Move(1, post), Move(1, .replaceAgent),
                Move(2, change(.foreground), change(.suspended, freezes: true), .kill(process: 0)),
            ]
        ),
        Scope(
            "handed over parked",
            .medium,
            "an agent hands over a parked observer, which continues",
            setting([0], [(0, 4)], [name]),
            prelude: parked,
            [Move(1, post), Move(1, .replaceAgent)]
        ),
        Scope(
            "states handed over",
            .medium,
            "an agent hands over the state of a name, and whoever has set it ends",
            setting([0, 1], [(0, name), (1, name)], [name]),
            prelude: [.rest(1), .setNameState(0, name: name, value: 1), .rest(2)],
            [Move(1, .replaceAgent), Move(1, .kill(process: 0))]
        ),
    ]

    /// The bus ends, and another is started.
    static let ofBuses = [
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
}
