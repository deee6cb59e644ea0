# SPDX-License-Identifier: Apache-2.0
"""How long a commit to an SQLite database takes to wake up another process, and what that one's waiting costs."""

import time
from dataclasses import replace
from statistics import median

from .figures import BARE, OURS, percentile
from .turns import take_turns

NAME = "com.example.bench.committed"
ALONE = "the commit alone"
# Peers/commit.c says what these do.
WAYS = {
    OURS: "name",
    "NotifyBus, a descriptor": "descriptor",
    BARE: "bus",
    "polling each ms": "poll",
    "inotify on the log": "inotify",
    "named pipe": "pipe",
    ALONE: "none",
}
# Microseconds until the next commit, random, so that polling meets it at any time.
PAUSE = -3000


def measure(context, daemon):
    """From before a commit until the other process has seen it, one at a time; then nothing happens."""
    posts = context.count(150, 10)
    middle = context.row("commit", "A commit until another process has seen it: median", "µs", daemon)
    slowest = context.row("commit-p99", "A commit until another process has seen it: 99th percentile", "µs", daemon)
    idle = context.row("commit-wakeups", "Wake-ups while nothing is committed", "/s", daemon)
    middle.note = "SQLite with a write-ahead log. 'The commit alone' tells nobody."
    bus = context.bus(daemon)
    observers = {}

    def start(label):
        path = context.folder / f"commit.{daemon}.{WAYS[label]}"
        technology = replace(context.commit, interface=f"{WAYS[label]}:{path}")
        if label == ALONE:
            poster = context.poster(technology, bus)
            poster.ask("route", 10, NAME)
            return poster
        observers[label] = context.observer(technology, bus, NAME)
        poster = context.poster(technology, bus, hears=observers[label])
        poster.ask("latency", 10, PAUSE, NAME)
        return poster

    def turn(label, poster):
        if label == ALONE:
            times = poster.ask("steps", posts, NAME)
        else:
            times = poster.ask("latency", posts, PAUSE, NAME)
        middle.add(label, median(times) / 1000)
        slowest.add(label, percentile(times, 0.99) / 1000)

    take_turns(context.count(9, 1), 14, WAYS, start, turn, [middle, slowest])
    seconds = context.count(4, 0.5)
    before = {label: observer.voluntary_switches() for label, observer in observers.items()}
    time.sleep(seconds)
    for label, observer in observers.items():
        idle.add(label, (observer.voluntary_switches() - before[label]) / seconds)
