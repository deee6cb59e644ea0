# SPDX-License-Identifier: Apache-2.0
"""How long a post takes to a program in a sandbox: to the agent's relay, and from there through xdg-dbus-proxy."""

import shutil
from dataclasses import replace
from pathlib import Path
from statistics import median

from .figures import OURS
from .latency import PAUSE
from .programs import PATIENCE, Missing, Program
from .servers import wait_until
from .states import start_agent
from .turns import take_turns

NAME = "com.example.bench"
RELAY = "org.notifybus.Relay1"
SANDBOXED = f"{OURS}, in a sandbox"


def measure(context, daemon):
    """One post at a time to one observer on the bus, and to one behind a proxy, in turns."""
    row = context.row("sandbox", "Post to callback, on the bus and in a sandbox: median", "µs", daemon, reference=OURS, is_baseline=True)
    posts = context.count(150, 20)
    bus = context.bus(daemon)
    start_agent(context, bus)
    names = {OURS: f"{NAME}.direct", SANDBOXED: f"{NAME}.sandboxed"}

    def start(label):
        if label == OURS:
            observer = context.observer(context.notifybus, bus, names[label])
        else:
            observer = context.observer(sandboxed(context), Sandbox(context, bus), names[label])
        poster = context.poster(context.notifybus, bus, hears=observer)
        poster.ask("latency", 10, PAUSE, names[label])
        return poster

    def turn(label, poster):
        row.add(label, median(poster.ask("latency", posts, PAUSE, names[label])) / 1000)

    take_turns(context.count(30, 1), 15, names, start, turn, [row])


def sandboxed(context):
    """NotifyBus as in a sandbox, where it hears by the relay."""
    return replace(context.notifybus, command=("/usr/bin/env", "NOTIFYBUS_RELAY=yes", *context.notifybus.command))


class Sandbox:
    """A proxy in front of a bus, as Flatpak starts it, whose programs may talk to the relay."""

    def __init__(self, context, bus):
        if not shutil.which("xdg-dbus-proxy"):
            raise Missing("xdg-dbus-proxy is not installed")
        # As the bus does when a program calls the relay.
        request = Program(context, [context.commands / "notify-agent", "--relay", "--address", bus.address], "the relay")
        if request.process.wait(PATIENCE) != 0:
            raise request.gone()
        path = bus.folder / "proxy"
        self.address = f"unix:path={path}"
        Program(context, ["xdg-dbus-proxy", bus.address, path, "--filter", f"--talk={RELAY}"], "xdg-dbus-proxy")
        wait_until(lambda: listens(path), "xdg-dbus-proxy did not listen")


def listens(path):
    """Whether a process listens on a socket, which exists before that: see proc_net_unix(5)."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()
    return any(fields[3] == "00010000" and fields[-1] == str(path) for fields in map(str.split, lines))
