# SPDX-License-Identifier: Apache-2.0
"""How long a post takes to its observer's callback, in two processes, one post at a time."""

from dataclasses import replace
from statistics import median

from .figures import OURS, percentile
from .turns import take_turns

NAME = "com.example.bench"
# Microseconds between a delivery and the next post, so that both processes sleep again.
PAUSE = 100


def measure(context, daemon):
    """Posts to one observer each, in turns, and takes the median and the 99th percentile of each turn."""
    posts = context.count(150, 20)
    middle = context.row("latency", "Post to callback, one observer: median", "µs", daemon)
    slowest = context.row("latency-p99", "Post to callback, one observer: 99th percentile", "µs", daemon)
    bus = context.bus(daemon)
    ours = context.notifybus
    ways = {OURS: ours}
    ways[f"{OURS}, dispatch queue"] = replace(ours, observer_style="queue")
    ways[f"{OURS}, AsyncSequence"] = replace(ours, observer_style="sequence")
    ways |= {peer.label: peer for peer in (context.notify, context.bare, *context.all_peers)}
    # Two programs with the same interface must not hear each other.
    names = {label: f"{NAME}.{index}" for index, label in enumerate(ways)}

    def start(label):
        observer = context.observer(ways[label], bus, names[label])
        poster = context.poster(ways[label], bus, hears=observer)
        poster.ask("latency", 10, PAUSE, names[label])
        return poster

    def turn(label, poster):
        times = poster.ask("latency", posts, PAUSE, names[label])
        middle.add(label, median(times) / 1000)
        slowest.add(label, percentile(times, 0.99) / 1000)

    take_turns(context.count(30, 1), 15, ways, start, turn, [middle, slowest])
