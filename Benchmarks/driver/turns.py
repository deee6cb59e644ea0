# SPDX-License-Identifier: Apache-2.0
"""Rounds in which everyone has a turn, so that what disturbs the machine hits all alike."""

from .programs import Missing


def take_turns(rounds, labels, start, turn, rows):
    """Starts each of `labels`, and gives each a turn in each round, every round beginning with another one.

    `start(label)` gives what is handed to `turn(label, …)`. Who raises `Missing` is left out from then on, and the rows
    say why.
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
    for number in range(rounds):
        order = list(started)
        for label in order[number % len(order) :] + order[: number % len(order)] if order else []:
            try:
                turn(label, started[label])
            except Missing as reason:
                lack(label, reason)
