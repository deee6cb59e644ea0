# SPDX-License-Identifier: Apache-2.0
"""What a post costs with more and more match rules on the bus, in the steps of dbus-broker's own benchmark."""

from dataclasses import replace
from statistics import median

from .turns import take_turns

NAME = "com.example.bench"
INTERFACE = f"org.notifybus.n.{NAME}"
# dbus-broker multiplies limits by the number of connections, and keeps 32 bits: of 10⁹ bytes each for 100,000 connections
# 276 MB are left, and some 210,000 rules take these.
LIMITS = {"max_match_rules_per_connection": 1_000_000, "max_connections_per_user": 4}


def measure(context, daemon):
    """A broadcast that matches no rule, and an answer; then the next. Powers of two, as that benchmark has."""
    powers = context.count([0, 3, 6, 9, 12, 15, 18], [0, 3])
    counts = {f"{2**power:,} rule{'s'[: power]}": 2**power for power in powers}
    ways = {
        "notifybus": ("NotifyBus, and a call to the bus", context.notifybus, f"{INTERFACE}.other"),
        "bare": ("the same with no library", replace(context.bare, interface=INTERFACE), f"{INTERFACE}.other"),
        "own": ("as dbus-broker's bench-message does", context.bare, "/org/example/Foo"),
    }
    # One after the other, because so many rules take memory.
    for key, (how, technology, rules) in ways.items():
        title = f"A post with rules of others on the bus: {how}"
        row = context.row(f"rules-{key}", title, "µs", daemon, reference=next(iter(counts)), is_baseline=True)
        kept, some = len(context.kept), counts
        if rules.startswith("/") and daemon == "dbus-daemon":
            # It compares each of them with each message, so that adding more would take minutes.
            some = {label: count for label, count in counts.items() if count <= 4096}
        fill_and_post(context, daemon, row, some, technology, rules)
        context.close(keep=kept)


def fill_and_post(context, daemon, row, counts, technology, rules):
    """One bus for each number of rules, so that they can take turns."""

    def start(label):
        bus = context.bus(daemon, **LIMITS)
        context.observer(context.bare, bus, NAME, counts[label], "stalled", style="each", interface=rules)
        poster = context.poster(technology, bus)
        poster.ask("steps", 10, NAME)
        return poster

    def turn(label, poster):
        row.add(label, median(poster.ask("steps", context.count(500, 10), NAME)) / 1000)

    take_turns(context.count(9, 1), 4, counts, start, turn, [row])
