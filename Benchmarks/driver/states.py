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
                set_state(context, bus, "suspend" if label == "suspended" else label, [observer])
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
    wait_until(lambda: lifecycle(context, bus, "status"), "notify-agent did not serve")
    return agent


def set_state(context, bus, verb, observers):
    """Changes the state of programs. An observer goes live without the agent if that does not answer within 2 s."""
    targets = [f"pid:{observer.pid}" for observer in observers]
    wait_until(lambda: lifecycle(context, bus, verb, *targets), f"notify-lifecycle {verb} failed")


def lifecycle(context, bus, *words):
    """Runs notify-lifecycle; whether it did what it should."""
    command = [context.commands / "notify-lifecycle", *words, "--address", bus.address]
    return subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
