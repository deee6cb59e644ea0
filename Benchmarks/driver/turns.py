# SPDX-License-Identifier: Apache-2.0
"""Rounds in which everyone has a turn, so that disturbances of the machine hit all alike."""

import time

from .programs import Missing

# The minimum number of rounds, however slow the machine is.
FEWEST = 3


def take_turns(rounds, seconds, labels, start, turn, rows):
    """Starts each of `labels`, and gives each a turn in each round, every round beginning with another one.

    `start(label)` gives what is handed to `turn(label, …)`. A label for which either raises `Missing` is left out from
    then on, and the rows say why. No round begins when `seconds` are over.
    """
    started = {}

    def lack(label, reason):
        started.pop(label, None)
        for row in rows:
            row.lack(label, reason)

    for label in labels:
        try:
            started[label] = start(label)
        except Missing as reason:
            lack(label, reason)
    deadline = time.monotonic() + seconds
    for number in range(rounds):
        if not started or (number >= FEWEST and time.monotonic() > deadline):
            break
        order = list(started)
        first = number % len(order)
        for label in order[first:] + order[:first]:
            try:
                turn(label, started[label])
            except Missing as reason:
                lack(label, reason)
