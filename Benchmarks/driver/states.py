# SPDX-License-Identifier: Apache-2.0
"""What a post costs, and leaves behind in the bus, by the state that its observer is in."""

import os
import signal
import subprocess

from .programs import PATIENCE, Missing, Program
from .servers import wait_until
from .turns import take_turns

NAME = "com.example.bench"
STOPPED = "libdbus, stopped process"


def measure(context, daemon):
    """A post whose observer is in one state or another, and what a million of them leave in the bus."""
    rounds = context.count(25, 1)
    cost = context.row(
        "states", "A post by its observer's state", "µs", daemon, reference="no observer", is_baseline=True
    )
    memory = context.row(
        "states-memory", "Bus memory for a million posts", "MB", daemon, reference="no observer", is_baseline=True
    )
    labels = ["no observer", "foreground", "background", "suspended", STOPPED]
    # dbus-broker disconnects the poster when too much is queued for an observer.
    posts = {label: context.count(800 if label == STOPPED else 4000, 50) for label in labels}
    memory.note = (
        f"What {rounds * posts['background']:,} posts added to the resident memory of {daemon} "
        f"({rounds * posts[STOPPED]:,} where it holds them), for a million."
    )
    resident, buses, observers = {}, {}, {}

    def start(label):
        bus = context.bus(daemon)
        technology = context.libdbus if label == STOPPED else context.notifybus
        start_agent(context, bus)
        if label == STOPPED:
            observer = context.observer(technology, bus, NAME)
            os.kill(observer.pid, signal.SIGSTOP)
        elif label != "no observer":
            observer = observers[label] = context.observer(technology, bus, NAME, report=f"every:{posts[label]}")
            if label != "foreground":
                lifecycle(context, bus, "suspend" if label == "suspended" else label, f"pid:{observer.pid}")
        poster = context.poster(technology, bus)
        for _ in range(context.count(8, 1)):
            turn(label, poster)
        cost.figures.pop(label)
        resident[label], buses[label] = bus.resident(), bus
        return poster

    def turn(label, poster):
        nanoseconds = poster.route(posts[label], NAME)
        if label == "foreground":
            observers[label].record()
        elif label in observers and observers[label].has_record():
            raise Missing(f"an observer that was {label} heard posts")
        cost.add(label, nanoseconds / 1000)

    take_turns(rounds, 60, labels, start, turn, [cost, memory])
    for label in cost.figures:
        memory.add(label, max(0, buses[label].resident() - resident[label]) / rounds / posts[label])


def start_agent(context, bus):
    """Starts the lifecycle agent on a bus; it serves when this returns."""
    agent = Program(context, [context.commands / "notify-agent", "--address", bus.address], "notify-agent")
    wait_until(lambda: lifecycle(context, bus, "status", check=False), "notify-agent did not serve")
    return agent


def lifecycle(context, bus, *words, check=True):
    """Runs notify-lifecycle; whether it did what it should. With `check` it must."""
    command = [context.commands / "notify-lifecycle", *words, "--address", bus.address]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if check and result.returncode != 0:
        raise Missing(f"notify-lifecycle {words[0]}: {result.stderr.strip()}")
    return result.returncode == 0
