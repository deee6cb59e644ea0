# SPDX-License-Identifier: Apache-2.0
"""A program that subscribes and reads nothing, beside posts of ours: what the bus keeps for it, and who is cut off."""

import os
import signal

from .figures import OURS
from .programs import Missing
from .servers import wait_until
from .states import start_agent
from .turns import take_turns

NAME = "com.example.bench"
NOBODY, FOREIGN = "nobody stalled", "libdbus, not reading"
STOPPED, HANGING = f"{OURS}, stopped", f"{OURS}, its callback hangs"


def measure(context, daemon):
    """One program posts, each post counts, and one observer reads them all; another one stalls."""
    posts = context.count(200_000, 2000)
    title = "Bus memory with a stalled subscriber"
    memory = context.row("stalled", title, "MB", daemon, reference=NOBODY, is_baseline=True)
    memory.note = (
        f"What {posts:,} posts of {OURS} add to the resident memory of {daemon}. The agent, which is on the bus, parks "
        "our stopped program. libdbus's is not stopped, it only doesn't read."
    )
    title = "Programs that the bus disconnects because of it"
    cut = context.row("stalled-cut", title, "", daemon, reference=NOBODY, is_baseline=True)
    cut_off = {}

    def turn(label, _):
        kept = len(context.kept)
        bus = context.bus(daemon)
        agent = start_agent(context, bus)
        observer = context.observer(context.notifybus, bus, NAME, 1, f"every:{posts}")
        stalled = stall(context, bus, label)
        poster = context.poster(context.notifybus, bus)
        poster.ask("burst", 100, "com.example.other", 1, 1, 0)
        before, clients = bus.resident(), bus.clients()
        try:
            poster.ask("burst", posts, NAME, 1, 1000, 0)
        except Missing:
            # It says below that it was disconnected.
            pass
        # Once disconnected, an observer doesn't count everything.
        wait_until(lambda: observer.has_record() or clients.keys() - bus.clients().keys(), "the posts did not arrive")
        memory.add(label, max(0, bus.resident() - before) / 1e6)
        gone = {clients[name] for name in clients.keys() - bus.clients().keys()}
        cut.add(label, len(gone))
        roles = {"the poster": poster, "the observer": observer, "the stalled one": stalled, "the agent": agent}
        cut_off.setdefault(label, set()).update(who for who, one in roles.items() if one and one.pid in gone)
        context.close(keep=kept)

    take_turns(context.count(3, 1), 30, [NOBODY, FOREIGN, STOPPED, HANGING], lambda label: None, turn, [memory, cut])
    cut.note = "; ".join(f"{label}: {', '.join(sorted(who)) or 'nobody'}" for label, who in cut_off.items())


def stall(context, bus, label):
    """Starts the one that stalls, if any; it has stalled when this returns."""
    if label == NOBODY:
        return None
    if label == FOREIGN:
        return context.observer(context.libdbus, bus, NAME, 1, "stalled", interface=f"org.notifybus.n.{NAME}")
    observer = context.observer(context.notifybus, bus, NAME, 1, "stalled" if label == HANGING else "each")
    if label == STOPPED:
        os.kill(observer.pid, signal.SIGSTOP)
        wait_until(lambda: observer.pid not in bus.clients().values(), "the stopped program was not parked")
    return observer
