# SPDX-License-Identifier: Apache-2.0
"""How many posts a second reach every one of several observers, each a process of its own; and storms."""

from .figures import OURS
from .programs import Missing
from .turns import take_turns

NAME = "com.example.bench"
# NotifyBus coalesces equal posts in its queue. To have each one counted, flush after this many.
FLUSH = 1000


def measure(context, daemon):
    """From the first post until the last observer has had all of them, none merged."""
    few = [context.bare, context.libdbus, context.sd_bus, context.gdbus]
    for full, posts, peers in [
        (1, 10000, [*few, context.python, context.redis, context.mqtt]),
        (10, 3000, [*few, context.redis, context.mqtt]),
        (100, 200, few),
    ]:
        kept = len(context.kept)
        key = f"throughput-{full}"
        observers = min(full, context.count(100, 3))
        title = f"Posts that reach each of {observers} observer{'s'[: observers > 1]}, none merged"
        row = context.row(key, title, "posts/s", daemon, more_is_better=True)
        one_throughput(context, context.bus(daemon), row, observers, context.count(posts, 50), peers)
        context.close(keep=kept)


def one_throughput(context, bus, row, count, posts, peers):
    """Takes turns at posting to `count` observers each."""
    ways = {OURS: context.notifybus} | {peer.label: peer for peer in peers}
    done = dict.fromkeys(ways, 0)

    def start(label):
        observers = [context.observer(ways[label], bus, NAME, 1, f"every:{posts}") for _ in range(count)]
        pair = (context.poster(ways[label], bus), observers)
        turn(label, pair)
        row.figures.pop(label)
        return pair

    def turn(label, pair):
        poster, observers = pair
        began, _ = poster.ask("burst", posts, NAME, 1, FLUSH if label == OURS else 0, 0)
        done[label] += posts
        records = [observer.record() for observer in observers]
        if any(heard != done[label] for _, heard in records):
            raise Missing(f"not all of {done[label]} posts were counted: {[heard for _, heard in records]}")
        row.add(label, posts / (max(time for time, _ in records) - began) * 1e9)

    take_turns(context.count(7, 1), 6, ways, start, turn, [row])


def measure_storm(context, daemon):
    """As many posts of ten names as the caller can make, until the last observer has heard the last of them."""
    full = context.count(1_000_000, 20000)
    for count in (1, 10):
        kept = len(context.kept)
        key = f"storm-{count}"
        observers = min(count, context.count(10, 2))
        who = f"the last of {observers} observers" if observers > 1 else "its observer"
        title = f"Storm of posts of 10 names, until {who} is up to date"
        row = context.row(key, title, "posts/s", daemon, more_is_better=True)
        part = context.count(20000 if observers == 1 else 5000, 500)
        row.note = f"{OURS} made {full:,} posts in each round, the others {part:,}."
        one_storm(context, context.bus(daemon), row, observers, full, part)
        context.close(keep=kept)


def one_storm(context, bus, row, count, full, part):
    """Takes turns at storms."""
    ways = {OURS: context.notifybus}
    ways |= {peer.label: peer for peer in (context.libdbus, context.sd_bus, context.gdbus)}
    made = dict.fromkeys(ways, 0)

    def start(label):
        observers = [context.observer(ways[label], bus, NAME, 10, "end") for _ in range(count)]
        return (context.poster(ways[label], bus), observers)

    def turn(label, pair):
        poster, observers = pair
        posts = full if label == OURS else part
        began, _ = poster.ask("burst", posts, NAME, 10, 0, 1)
        records = [observer.record() for observer in observers]
        made[label] += posts + 1
        posted, merged = poster.ask("figures")
        heard = [heard for _, heard in records]
        # The end is heard after everything posted before it. By then all is there except what was coalesced: by
        # the poster, which says how much, and by an observer that fell behind, which can only lessen it.
        if posted != made[label] or max(heard) > posted - merged or (label != OURS and min(heard) != posted):
            raise Missing(f"{posted} of {made[label]} were posted, {merged} merged, {heard} heard")
        row.add(label, posts / (max(time for time, _ in records) - began) * 1e9)

    take_turns(context.count(5, 1), 7, ways, start, turn, [row])
