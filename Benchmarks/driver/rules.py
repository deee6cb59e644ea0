# SPDX-License-Identifier: Apache-2.0
"""What a post costs with more and more match rules on the bus, in the steps of dbus-broker's own benchmark."""

from dataclasses import replace
from statistics import median

from .turns import take_turns

NAME = "com.example.bench"
INTERFACE = f"org.notifybus.n.{NAME}"
# Below the bus's limit for each connection.
PER_PROGRAM = 32768


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
        kept = len(context.kept)
        fill_and_post(context, daemon, row, counts, technology, rules)
        context.close(keep=kept)


def fill_and_post(context, daemon, row, counts, technology, rules):
    """One bus for each number of rules, so that they can take turns."""

    def start(label):
        bus, count = context.bus(daemon), counts[label]
        for first in range(0, count, PER_PROGRAM):
            part = f"{rules}{first // PER_PROGRAM}"
            context.observer(
                context.bare, bus, NAME, min(count - first, PER_PROGRAM), "stalled", style="each", interface=part
            )
        poster = context.poster(technology, bus)
        poster.ask("steps", 10, NAME)
        return poster

    def turn(label, poster):
        # dbus-daemon compares each rule for a path, so that a post takes milliseconds.
        is_slow = rules.startswith("/") and daemon == "dbus-daemon"
        steps = min(500, 100_000 // counts[label] + 5) if is_slow else 500
        row.add(label, median(poster.ask("steps", context.count(steps, 10), NAME)) / 1000)

    take_turns(context.count(9, 1), 4, counts, start, turn, [row])
