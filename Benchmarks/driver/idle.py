# SPDX-License-Identifier: Apache-2.0
"""What waiting costs while nothing happens: how often threads wake up, and memory."""

import subprocess
import time

from .programs import Program
from .servers import wait_until
from .states import start_agent

NAME = "com.example.bench"
# Seconds until everything is at rest: the agent looks at new observers a few times, once a second.
SETTLE = 6


def measure(context, daemon):
    """Counts how often the threads of each program go to sleep; each time they had been woken."""
    seconds, observers = context.count(4, 0.5), context.count(100, 3)
    agent_label = f"notify-agent, {observers} observers"
    wakeups = context.row("idle-wakeups", "Wake-ups while nothing happens", "/s", daemon, reference="notify-wait -f")
    memory = context.row(
        "idle-memory", "Resident memory while nothing happens", "MB", daemon, reference="notify-wait -f"
    )
    alone, managed = context.bus(daemon), context.bus(daemon)
    agent = start_agent(context, managed)
    waiters = [wait_for(context, managed, f"{NAME}.n{index}") for index in range(observers)]
    rule = "type='signal',interface='org.example.bench'"
    programs = {
        "notify-wait -f": wait_for(context, alone, NAME),
        "notify-wait -f, with an agent": waiters[0],
        agent_label: agent,
        "dbus-monitor": Program(
            context,
            ["dbus-monitor", "--address", alone.address, rule],
            "dbus-monitor",
            stdout=subprocess.DEVNULL,
        ),
        "gdbus monitor": Program(
            context,
            ["gdbus", "monitor", "--address", alone.address, "--dest", "org.freedesktop.DBus"],
            "gdbus monitor",
            stdout=subprocess.DEVNULL,
        ),
    }
    time.sleep(context.count(SETTLE, 0.2))
    before = {label: program.voluntary_switches() for label, program in programs.items()}
    time.sleep(seconds)
    for label, program in programs.items():
        wakeups.add(label, (program.voluntary_switches() - before[label]) / seconds)
        memory.add(label, program.resident() / 1e6)


def wait_for(context, bus, name, output=subprocess.DEVNULL):
    """Starts a notify-wait that follows a name; it is live when this returns."""
    ready = context.folder / f"ready.{len(context.kept)}"
    ready.unlink(missing_ok=True)
    command = [context.commands / "notify-wait", "--follow", "--address", bus.address, "--ready-file", ready, name]
    program = Program(context, command, "notify-wait", stdout=output)
    wait_until(ready.exists, "notify-wait was not live")
    return program
