# SPDX-License-Identifier: Apache-2.0
"""What happens in a run: a pure function of the seed. Nothing here knows of processes."""

import random

# How long a round lasts, in seconds. At its end everything continues, is released, and settles, so that each round can be
# judged by itself: each name c.u.… is posted at most once in a round, so that it is known which post was heard.
ROUND = 8.0
UNIQUE = 2000
# How often there are many posts just when a program continues.
BURSTS = 6

# Who is there: how many names c.u.… it observes, and how many c.h.…, which are posted again and again.
OBSERVERS = {
    "untouched": {"kind": "c", "unique": UNIQUE, "hot": 10},
    "c1": {"kind": "c", "hot": 1},
    "c10": {"kind": "c", "hot": 10},
    "c300": {"kind": "c", "unique": 300},
    "c2000": {"kind": "c", "unique": UNIQUE},
    "swift1": {"kind": "swift", "hot": 1},
    "swift10": {"kind": "swift", "hot": 10},
    "swift300": {"kind": "swift", "unique": 300},
    "swift2000": {"kind": "swift", "unique": UNIQUE},
    "prefixes": {"kind": "swift", "prefixes": ["c.u.11", "c.u.05"]},
    "relayed": {"kind": "swift", "unique": 300, "hot": 2, "relay": True},
    "relayed-prefix": {"kind": "swift", "prefixes": ["c.u.12"], "relay": True},
    # With what it adds, more than dbus-daemon allows one connection here: see `LIMIT` and `more`.
    "many": {"kind": "swift", "unique": 1000},
    # Two connections: one may be registered when the other is not.
    "double": {"kind": "swift", "unique": 300, "hot": 2, "centers": 2},
    # They nap when another window has the focus.
    "dozes": {"kind": "c", "unique": 300, "nap": "background"},
    "sleeps": {"kind": "swift", "unique": 300, "nap": "frozen"},
}
# How many match rules dbus-daemon allows one connection: enough for each observer, but not for MORE names besides.
LIMIT = UNIQUE + 200
MORE = [f"c.m.{number}" for number in range(1500)]
# The names that have states. The setter does not observe them; others do, of whom one is never touched.
STATES = [f"c.s.{number}" for number in range(4)]
KEEPERS = ["untouched", "c10", "swift10"]
SETTER = "setter"
POSTERS = {"poster-c": "c", "poster-swift": "swift"}

# What a person or the world does to an observer, and how often in relation to the others.
ACTS = {
    "background": 3, "foreground": 4, "suspend": 3, "resume": 3, "freeze": 2, "release": 2,
    "stop": 6, "add": 2, "fork": 1, "cut": 1, "report": 3, "cut-changing": 1, "more": 4, "fewer": 4,
}
# What a program can't do while it is frozen.
OWN = {"add", "fork", "cut", "report", "cut-changing", "more", "fewer"}
# The only observers that do so.
ONLY = {"report": {"kind": "swift"}, "fork": {"kind": "c"}, "more": {"unique": 1000}, "fewer": {"unique": 1000}}
# What happens to everybody: each once in five rounds, of which the last is quiet.
WORLD = ["kill-agent", "replace-agent", "stop-agent", "restart-bus"]
# What else can be left out: the focus moves, and states of names are set.
OTHERS = ["nap", "state"]


def touched():
    return [who for who in OBSERVERS if who != "untouched"]


def nappers():
    return [who for who, facts in OBSERVERS.items() if "nap" in facts]


def draw(source, weights, only):
    """One of them, by their weights. An act that is left out changes nothing else."""
    what = source.choices(list(weights), list(weights.values()))[0]
    return what if what in only else "nothing"


def names_of(who):
    """What it observes, as it is told."""
    facts = OBSERVERS[who]
    return [
        *(f"add {name}" for name in STATES if who in KEEPERS),
        *(f"add c.u.{name:04d}" for name in range(facts.get("unique", 0))),
        *(f"add c.h.{name}" for name in range(facts.get("hot", 0))),
        *(f"prefix {name}" for name in facts.get("prefixes", [])),
    ]


def acts_of(source, who, only):
    """What happens to one observer in a round: times and acts."""
    time, acts, frozen, facts = source.uniform(0.1, 1), [], False, OBSERVERS[who]
    while time < ROUND - 1.5:
        item = {"at": round(time, 3), "act": draw(source, ACTS, only)}
        length = source.choice([0.02, 0.3, source.uniform(0.5, 2.2), source.uniform(0.5, 2.2)])
        state = source.choice(["foreground", "background", "suspended"])
        # Mostly long enough to come to rest, and sometimes not.
        time += source.choice([0.01, source.expovariate(2), source.uniform(0.5, 2.5), source.uniform(0.5, 2.5)])
        if item["act"] == "nothing" or item["act"] in OWN and frozen:
            continue
        if any(facts.get(fact) != value for fact, value in ONLY.get(item["act"], {}).items()):
            continue
        if item["act"] == "add":
            item["name"] = source.choice(names_of(who))
        elif item["act"] == "cut-changing":
            item["change"] = source.choice(["background", "foreground", "suspend", "resume"])
            item["after"] = source.choice([0.0, source.uniform(0, 0.02), source.uniform(0, 0.06)])
        if item["act"] == "stop":
            item["for"] = round(length, 3)
            # A program that the agent has frozen may be frozen again once it has registered.
            time += length
        elif item["act"] == "report":
            item["state"] = state
        elif item["act"] not in OWN:
            # To be suspended is no reason to continue.
            frozen = item["act"] == "freeze" or frozen and item["act"] == "suspend"
        acts.append(item)
    return acts


def posts_of(source, names):
    """Bursts of one poster: single posts, and storms of what is posted again and again."""
    time, bursts = 0.0, []
    names = iter(names)
    while time < ROUND - 0.5:
        kind = source.choices(["single", "several", "storm"], [6, 3, 1])[0]
        count = {"single": 1, "several": source.randint(2, 12), "storm": 40}[kind]
        burst = [name for _, name in zip(range(count), names)]
        if kind == "storm":
            burst += [f"c.h.{source.randrange(10)}" for _ in range(source.randint(10, 400))]
            source.shuffle(burst)
        elif source.random() < 0.2:
            burst.append(f"c.h.{source.randrange(10)}")
        bursts.append({"at": round(time, 3), "names": burst})
        time += source.expovariate(1 / (0.012 * max(1, len(burst) ** 0.5)))
    return bursts


def focus_of(source, only):
    """Which window has the focus: that of one who naps without it, or another one."""
    time, moves = source.uniform(0.1, 0.5), []
    while "nap" in only and time < ROUND - 2:
        moves.append({"at": round(time, 3), "to": source.choice([*nappers(), None])})
        time += source.choice([0.05, source.uniform(0.3, 1.5)])
    return moves


def states_of(source, number, only):
    """Which states are set and read. Half of them are set at the beginning alone, so that programs that have heard of
    nothing since must remember them."""
    if "state" not in only:
        return []
    items = [{"at": 0.1, "who": SETTER, "what": f"set {name} {number * 1000 + index}"} for index, name in enumerate(STATES)]
    time, value = source.uniform(0.1, 0.5), len(STATES)
    while time < ROUND - 0.5:
        value += 1
        if source.random() < 0.5:
            what, who = f"set {source.choice(STATES[: len(STATES) // 2])} {number * 1000 + value}", SETTER
        else:
            what, who = f"get {source.choice(STATES)}", source.choice([SETTER, "untouched"])
        items.append({"at": round(time, 3), "who": who, "what": what})
        time += source.expovariate(8)
    return items


def world_of(seed, number, only):
    """What happens to everybody in a round; None in a quiet one."""
    order = [act for act in WORLD if act in only]
    block, index = divmod(number, len(order) + 1)
    random.Random(f"{seed}/world/{block}").shuffle(order)
    return [*order, None][index]


def make(seed, number, only):
    """Round `number` of the run of this seed."""
    source = random.Random(f"{seed}/{number}")
    order = [f"c.u.{name:04d}" for name in source.sample(range(UNIQUE), UNIQUE)]
    # Some are kept for what is posted just when a program continues.
    kept, order = order[: UNIQUE // 2], order[UNIQUE // 2 :]
    half = len(order) // len(POSTERS)
    plan = {
        "posts": {
            who: posts_of(source, order[index * half : (index + 1) * half]) for index, who in enumerate(POSTERS)
        },
        "acts": {who: acts_of(source, who, only) for who in touched() if who not in nappers()},
        "focus": focus_of(source, only),
        "states": states_of(source, number, only),
    }
    ends = [
        (who, item) for who, acts in plan["acts"].items() for item in acts
        if item["act"] in ("foreground", "resume") or item.get("for", 0) > 0.2
    ]
    source.shuffle(ends)
    ends.sort(key=lambda end: OBSERVERS[end[0]].get("unique", 0), reverse=True)
    for index, (_, item) in enumerate(ends[:BURSTS]):
        item["poster"] = source.choice(list(POSTERS))
        item["then"] = kept[index * len(kept) // BURSTS : (index + 1) * len(kept) // BURSTS]
    item = {"at": round(source.uniform(1, ROUND - 4), 3), "for": source.choice([0.1, 0.5, 3.5])}
    # As soon as a new agent is there, perhaps before all have registered.
    item["early"] = source.choice(["background", "suspend", "resume"])
    plan["world"] = [item | {"act": act} for act in [world_of(seed, number, only)] if act]
    return plan
