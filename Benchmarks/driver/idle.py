# SPDX-License-Identifier: Apache-2.0
"""What waiting costs while nothing happens: how often threads wake up, and memory."""

import json
import os
import pwd
import resource
import subprocess
import time

from .programs import PATIENCE, Program
from .servers import wait_until
from .states import start_agent

NAME = "com.example.bench"
# Seconds until everything is at rest: the agent looks at new observers a few times, once a second.
SETTLE = 6
# The agent takes 4,096 connections of each user: see Documentation/lifecycle.md. dbus-daemon takes only known users.
USERS = ("daemon", "bin", "nobody")
# Each has two threads.
CONNECTIONS_PER_PROCESS = 250


def measure(context, daemon):
    """Counts how often the threads of each program go to sleep; each time they had been woken."""
    seconds, observers = context.count(4, 0.5), context.count(100, 3)
    agent_label, all_label = f"notify-agent, {observers} observers", f"{observers} of notify-wait -f"
    wakeups = context.row("idle-wakeups", "Wake-ups while nothing happens", "/s", daemon, reference="notify-wait -f")
    memory = context.row(
        "idle-memory", "Resident memory while nothing happens", "MB", daemon, reference="notify-wait -f"
    )
    alone, managed = context.bus(daemon), context.bus(daemon)
    agent = start_agent(context, managed)
    waiters = [wait_for(context, managed, f"{NAME}.n{index}") for index in range(observers)]
    rule = "type='signal',interface='org.example.bench'"
    programs = {
        "notify-wait -f": [wait_for(context, alone, NAME)],
        all_label: waiters,
        agent_label: [agent],
    }
    for label, command in {
        "dbus-monitor": ["dbus-monitor", "--address", alone.address, rule],
        "gdbus monitor": ["gdbus", "monitor", "--address", alone.address, "--dest", "org.freedesktop.DBus"],
    }.items():
        programs[label] = [Program(context, command, label, stdout=subprocess.DEVNULL)]
    time.sleep(context.count(SETTLE, 0.2))
    before = {label: switches(some) for label, some in programs.items()}
    time.sleep(seconds)
    for label, some in programs.items():
        wakeups.add(label, (switches(some) - before[label]) / seconds)
        memory.add(label, sum(program.resident() for program in some) / 1e6)
    # Which bus it is makes no difference to the agent, but dbus-daemon takes minutes to let so many in: it compares each
    # newcomer with everybody's rules.
    if daemon == "dbus-broker" or context.is_check:
        measure_crowd(context, daemon)


def switches(programs):
    """How often the threads of programs have gone to sleep, all together."""
    return sum(program.voluntary_switches() for program in programs)


def measure_crowd(context, daemon):
    """The agent's memory with very many observing connections, of few processes."""
    row = context.row(
        "agent-memory", "Resident memory of the agent", "MB", daemon, reference="no observer", is_baseline=True
    )
    users = [user.pw_uid for user in pwd.getpwall() if user.pw_name in USERS]
    if os.geteuid() != 0 or len(users) < len(USERS):
        users = [None]
    observers = context.count(10_000 if len(users) > 1 else 4_000, 6)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most < observers + 1000:
        return context.excuse(row, f"{observers:,} observers need as many descriptors; this machine allows {most:,}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bus = context.bus(daemon)
    bus.folder.chmod(0o711)
    agent = start_agent(context, bus)
    row.add("no observer", agent.resident() / 1e6)
    each = min(CONNECTIONS_PER_PROCESS, observers // len(users))
    crowd = []
    while len(crowd) * each < observers:
        index = len(crowd)
        crowd.append(
            context.observer(
                context.notifybus,
                bus,
                f"{NAME}.p{index}",
                each,
                style="centers",
                begun=True,
                user=users[index % len(users)],
            )
        )
        if len(crowd) % 2 == 0:
            crowd[-2].finish()
            crowd[-1].finish()
    wait_until(lambda: observer_count(context, bus) >= observers, "not all observers registered with the agent")
    time.sleep(context.count(SETTLE, 0.2))
    row.add(f"{observers:,} observers", agent.resident() / 1e6)


def observer_count(context, bus):
    """How many observing connections the agent knows."""
    command = [context.commands / "notify-lifecycle", "status", "--json", "--address", bus.address]
    said = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).stdout
    return json.loads(said)["observers"] if said else 0


def wait_for(context, bus, name, output=subprocess.DEVNULL):
    """Starts a notify-wait that follows a name; it is live when this returns."""
    ready = context.folder / f"ready.{len(context.kept)}"
    ready.unlink(missing_ok=True)
    command = [context.commands / "notify-wait", "--follow", "--address", bus.address, "--ready-file", ready, name]
    program = Program(context, command, "notify-wait", stdout=output)
    wait_until(ready.exists, "notify-wait was not live")
    return program
