# SPDX-License-Identifier: Apache-2.0
"""Whole commands: from start to end, as a shell script runs them."""

import os
import subprocess
from statistics import median

from .context import HERE
from .figures import BARE
from .programs import PATIENCE, Missing
from .turns import take_turns

NAME = "com.example.bench"
PATH, INTERFACE, MEMBER = "/org/notifybus", f"org.notifybus.n.{NAME}", "Posted"


def launch(context, bus, count, command, until_first=False):
    """Runs a command several times on a bus; the times in nanoseconds and the peak memory in kB."""
    environment = os.environ | {
        "DBUS_SESSION_BUS_ADDRESS": bus.address,
        "PATH": f"{context.commands}:{os.environ['PATH']}:/usr/sbin:/sbin",
        "LC_ALL": "C.UTF-8",
    }
    options = ["--first"] if until_first else []
    try:
        result = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", context.peers / "launch", *options, str(count), *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{command[0]} did not end within {PATIENCE} s") from None
    runs = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
    if len(runs) != count or any(status for _, _, status in runs):
        raise Missing(f"{command[0]} failed: {' '.join(result.stderr.split())[:200]}")
    return [time for time, _, _ in runs], max(memory for _, memory, _ in runs)


def measure(context, daemon):
    """Posting, waiting, and both."""
    bus = context.bus(daemon)
    measure_posting(context, bus)
    measure_many_names(context, bus)
    measure_waiting(context, bus)
    measure_round(context, bus)


def commands_that_post():
    """The same post by each command. NotifyBus hears them all."""
    signal = f"{INTERFACE}.{MEMBER}"
    return {
        "notify-post": ["notify-post", NAME],
        "dbus-send": ["dbus-send", "--session", PATH, signal, f"string:{NAME}"],
        "gdbus emit": ["gdbus", "emit", "--session", "--object-path", PATH, "--signal", signal, f"'{NAME}'"],
        "busctl emit": ["busctl", "--user", "emit", PATH, INTERFACE, MEMBER, "s", NAME],
    }


def measure_posting(context, bus):
    """One post, from the start of the command to its end. An observer counts what arrives."""
    runs = context.count(10, 2)
    row = context.row(
        "post-command", "A command that posts, from start to end", "ms", bus.kind, reference="notify-post"
    )
    memory = context.row("post-memory", "A command that posts: peak memory", "MB", bus.kind, reference="notify-post")
    commands = {**commands_that_post(), BARE: [context.peers / "command", "post", NAME]}
    observer = context.observer(context.notifybus, bus, NAME, 1, f"every:{runs}")
    made = 0

    def turn(label, command):
        nonlocal made
        times, peak = launch(context, bus, runs, command)
        made += runs
        if observer.record()[1] != made:
            raise Missing("what it posted did not arrive")
        row.add(label, median(times) / 1e6)
        memory.add(label, peak / 1e3)

    take_turns(context.count(10, 1), 6, commands, commands.get, turn, [row, memory])
    context.close(keep=context.kept.index(observer))


def measure_many_names(context, bus):
    """Many names to one command, against a command for each."""
    lines = context.count(20000, 100)
    row = context.row("post-many", "Many posts by commands, per post", "µs", bus.kind, reference="notify-post -")
    row.note = f"{lines:,} lines on the standard input of one 'notify-post -'; of the others, a command for each post."
    names = context.folder / "names"
    names.write_text(f"{NAME}\n" * lines)
    commands = {"notify-post -": ["sh", "-c", f"notify-post - <'{names}'"]} | commands_that_post()
    observer = context.observer(context.notifybus, bus, NAME, 1, f"every:{lines}")
    rest = 0

    def turn(label, command):
        nonlocal rest
        if label == "notify-post -":
            times, _ = launch(context, bus, 1, command)
            observer.record()
            row.add(label, times[0] / 1e3 / lines)
            return
        # The posts of single commands shift the count; the same number of unmeasured posts evens it out.
        times, _ = launch(context, bus, context.count(5, 1), command)
        rest += len(times)
        row.add(label, median(times) / 1e3)

    def even_out():
        if rest % lines:
            poster = context.poster(context.notifybus, bus)
            poster.ask("burst", lines - rest % lines, NAME, 1, 1000, 0)
            observer.record()

    take_turns(context.count(5, 1), 5, commands, commands.get, turn, [row])
    even_out()
    context.close(keep=context.kept.index(observer))


def measure_waiting(context, bus):
    """Until a command that waits says so, and its peak memory by then."""
    runs = context.count(5, 1)
    row = context.row("wait-start", "A command that waits: until it says so", "ms", bus.kind, reference="notify-wait")
    memory = context.row("wait-memory", "A command that waits: peak memory", "MB", bus.kind, reference="notify-wait")
    row.note = "notify-wait is live by then; the others have connected and say the first thing they have to say."
    rule = f"type='signal',interface='{INTERFACE}'"
    commands = {
        "notify-wait": ["notify-wait", "--follow", "--ready-fd", "3", NAME],
        "dbus-monitor": ["dbus-monitor", "--session", rule],
        "gdbus monitor": ["gdbus", "monitor", "--session", "--dest", "org.freedesktop.DBus"],
        BARE: [context.peers / "command", "wait", NAME],
    }

    def turn(label, command):
        times, peak = launch(context, bus, runs, command, until_first=True)
        row.add(label, median(times) / 1e6)
        memory.add(label, peak / 1e3)

    take_turns(context.count(8, 1), 6, commands, commands.get, turn, [row, memory])


def measure_round(context, bus):
    """A script that waits, posts when the observer is live, and goes on when it has heard."""
    runs = context.count(5, 1)
    row = context.row(
        "wait-then",
        "Wait, post once the observer is live, hear it, end",
        "ms",
        bus.kind,
        reference="notify-wait --then",
    )
    script = str(HERE / "Peers" / "wait-with-dbus-monitor")
    commands = {
        "notify-wait --then": ["notify-wait", NAME, "--then", f"notify-post {NAME}"],
        "dbus-monitor and dbus-send": [script, PATH, INTERFACE, MEMBER, NAME],
    }

    def turn(label, command):
        row.add(label, median(launch(context, bus, runs, command)[0]) / 1e6)

    take_turns(context.count(8, 1), 6, commands, commands.get, turn, [row])
