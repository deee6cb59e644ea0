# SPDX-License-Identifier: Apache-2.0
"""What a post costs while others observe other names, and what it costs and leaves behind by its observer's state."""

import os
import signal
import subprocess

from .programs import PATIENCE, Missing, Program
from .servers import wait_until
from .turns import take_turns

NAME = "com.example.bench"
STOPPED = "libdbus, stopped process"


def measure(context, daemon):
    """The time until the bus has dealt with a post that nobody observes, with more and more names of others."""
    counts = context.count([0, 1000, 10000, 40000], [0, 50])
    technologies = [context.notifybus, context.libdbus]
    for technology in technologies:
        how = "" if technology is context.notifybus else ", a rule with arg0 for each name"
        row = context.row(
            f"scale-{technology.label.lower()}",
            f"A post while others observe other names: {technology.label}{how}",
            "µs",
            daemon,
            reference="0 names",
            is_baseline=True,
        )
        kept = len(context.kept)
        fill_and_post(context, daemon, row, technology, counts)
        context.close(keep=kept)


def fill_and_post(context, daemon, row, technology, counts):
    """One bus for each number of names, so that they can take turns."""

    def start(label):
        count = int(label.split()[0].replace(",", ""))
        bus = context.bus(daemon)
        if count:
            style = "once" if technology is context.notifybus else "each"
            context.observer(technology, bus, "com.example.other", count, style=style)
        return (context.poster(technology, bus), count)

    def turn(label, pair):
        poster, count = pair
        # Where a post takes milliseconds, fewer of them will do.
        is_slow = count >= 1000 and technology is not context.notifybus
        posts = context.count(2_000_000 // (count + 1000) if is_slow else 2000, 50)
        row.add(label, poster.ask("route", posts, NAME)[0] / posts / 1000)

    labels = [f"{count:,} names" for count in counts]
    take_turns(context.count(9, 1), 5, labels, start, turn, [row])


def measure_states(context, daemon):
    """A post whose observer is in one state or another, and what a million of them leave in the bus."""
    rounds = context.count(10, 1)
    cost = context.row(
        "states", "A post by its observer's state", "µs", daemon, reference="no observer", is_baseline=True
    )
    memory = context.row(
        "states-memory", "Bus memory for a million posts", "MB", daemon, reference="no observer", is_baseline=True
    )
    labels = ["no observer", "foreground", "background", "suspended", STOPPED]
    # dbus-broker disconnects the poster when it holds too much for somebody.
    posts = {label: context.count(2000 if label == STOPPED else 10000, 50) for label in labels}
    memory.note = (
        f"What {rounds * posts['background']:,} posts added to the resident memory of {daemon} "
        f"({rounds * posts[STOPPED]:,} where it holds them), for a million."
    )
    resident, buses = {}, {}

    def start(label):
        bus = context.bus(daemon)
        technology = context.libdbus if label == STOPPED else context.notifybus
        start_agent(context, bus)
        if label == STOPPED:
            observer = context.observer(technology, bus, NAME)
            os.kill(observer.pid, signal.SIGSTOP)
        elif label != "no observer":
            observer = context.observer(technology, bus, NAME, report="every:1000000000")
            if label != "foreground":
                lifecycle(context, bus, "suspend" if label == "suspended" else label, f"pid:{observer.pid}")
        poster = context.poster(technology, bus)
        for _ in range(3):
            poster.ask("route", posts[label], NAME)
        resident[label], buses[label] = bus.resident(), bus
        return poster

    def turn(label, poster):
        cost.add(label, poster.ask("route", posts[label], NAME)[0] / posts[label] / 1000)

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
