# SPDX-License-Identifier: Apache-2.0
"""How long an event of the system takes to a callback: the time zone, set as systemd-timedated sets it."""

import os
import subprocess
import time
from statistics import median

from .figures import OURS
from .programs import Missing, Program
from .servers import wait_until
from .states import lifecycle
from .turns import take_turns

# The agent reports a file at most every 50 ms.
PAUSE = 0.06
EVENT = "com.apple.system.timezone"
ZONES = ["UTC", "Europe/Berlin"]


def namespace():
    """The command that runs a program with mounts of its own."""
    if os.geteuid() == 0:
        return ["unshare", "--mount"]
    return ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]


def measure(context, daemon):
    """Sets the time zone of an agent that has a copy of /etc, and waits for an observer of it."""
    row = context.row("event", "A change of the time zone to callback: median", "µs", daemon)
    row.note = "inotify: the program watches a file of its own, and the change is to its time."
    bus, etc = context.bus(daemon), context.folder / f"etc.{daemon}"
    if subprocess.run([*namespace(), "true"], capture_output=True, check=False).returncode != 0:
        context.excuse(row, "an agent with mounts of its own can't be started here")
        return
    etc.mkdir()
    link, file = etc / "localtime", context.folder / EVENT
    set_zone(link, 1)

    def start(label):
        if label == OURS:
            script = 'mount --bind "$1" /etc && exec "$2" --address "$3"'
            arguments = [str(etc), str(context.commands / "notify-agent"), bus.address]
            Program(context, [*namespace(), "sh", "-c", script, "sh", *arguments], "notify-agent")
            wait_until(lambda: lifecycle(context, bus, "status"), "notify-agent did not serve")
            observer = context.observer(context.notifybus, bus, EVENT)
            # The first observer of an event waits until its source is followed.
            wait_until(lambda: set_zone(link, 0) or set_zone(link, 1) or observer.has_record(), "no event came")
            drain(observer)
        else:
            observer = context.observer(context.inotify, bus, EVENT)
        return observer

    def turn(label, observer):
        times = []
        for index in range(context.count(10, 2)):
            began = time.monotonic_ns()
            if label == OURS:
                set_zone(link, index)
            else:
                os.utime(file)
            times.append(observer.record()[0] - began)
            time.sleep(PAUSE)
        if observer.has_record():
            raise Missing("an event came twice")
        row.add(label, median(times) / 1000)

    take_turns(context.count(9, 1), 12, [OURS, "inotify"], start, turn, [row])


def set_zone(link, index):
    """Replaces the link, so that it is never missing."""
    new = link.with_name("new")
    new.symlink_to(f"../usr/share/zoneinfo/{ZONES[index % len(ZONES)]}")
    new.rename(link)


def drain(observer):
    """Reads what has arrived until no more comes."""
    while observer.has_record(2):
        observer.record()
