# SPDX-License-Identifier: Apache-2.0
"""How long a post takes to its observer's callback, in two processes, one post at a time."""

from dataclasses import replace
from statistics import median

from .figures import OURS, percentile
from .programs import Missing

NAME = "com.example.bench"
PAUSE = 100


def measure(context, daemon):
    """Posts to one observer each, in turns, and takes the median and the 99th percentile of each turn."""
    rounds, posts = context.count(15, 1), context.count(400, 20)
    middle = context.row("latency", "Post to callback, one observer: median", "µs", daemon)
    slowest = context.row("latency-p99", "Post to callback, one observer: 99th percentile", "µs", daemon)
    bus = context.bus(daemon)
    ways = [
        (OURS, context.notifybus),
        (f"{OURS}, dispatch queue", replace(context.notifybus, observer_style="queue")),
        (f"{OURS}, AsyncSequence", replace(context.notifybus, observer_style="sequence")),
    ]
    peers = [context.libdbus, context.sd_bus, context.gdbus, context.python, context.inotify, context.redis, context.mqtt]
    ways += [(peer.label, peer) for peer in peers]
    posters = {}
    for label, technology in ways:
        # Two ways over one interface must not hear each other.
        name = f"{NAME}.{len(posters)}"
        try:
            observer = context.observer(technology, bus, name)
            posters[label] = (context.poster(technology, bus, hears=observer), name)
            posters[label][0].ask("latency", 10, PAUSE, name)
        except Missing as reason:
            lack(label, reason, posters, middle, slowest)
    for _ in range(rounds):
        for label, (poster, name) in list(posters.items()):
            try:
                times = poster.ask("latency", posts, PAUSE, name)
                if len(times) != posts:
                    raise Missing(f"{len(times)} of {posts} posts arrived")
            except Missing as reason:
                lack(label, reason, posters, middle, slowest)
                continue
            middle.add(label, median(times) / 1000)
            slowest.add(label, percentile(times, 0.99) / 1000)


def lack(label, reason, participants, *rows):
    """Leaves somebody out of the further rounds, and says why."""
    participants.pop(label, None)
    for row in rows:
        row.lack(label, reason)
