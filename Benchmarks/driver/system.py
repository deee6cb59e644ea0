# SPDX-License-Identifier: Apache-2.0
"""A whole system: many programs that observe many names, most of them in the background, and posts to few of them."""

import resource
import time

from .figures import OURS
from .programs import Missing
from .states import set_state, start_agent
from .turns import take_turns

NAME = "com.example.bench"
NAMES = 20
FOREGROUND = f"{OURS}, foreground"
# One in this many programs is in the foreground.
SHARE = 10
# This many programs are started at a time.
BATCH = 50


def measure(context, daemon):
    """The processor time of everybody involved for each post: the bus, all programs, the agent and the commands."""
    # One or two descriptors for each program, here and in the bus.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    programs = min(context.count(1000, 2 * SHARE), most // 4)
    title = f"{programs:,} programs with {NAMES} names each: processor time of all of them and the bus for a post"
    row = context.row("system", title, "µs", daemon)
    row.note = (
        f"Each post has one observer. Of {OURS}'s programs, one in {SHARE} is in the foreground, and two change their "
        f"state in each round of {2 * SHARE * NAMES} posts; the others have no such states."
    )
    ways = {OURS: context.notifybus, FOREGROUND: context.notifybus}
    ways |= {peer.label: peer for peer in (context.libdbus, context.gdbus)}
    # One after the other, because all at once would be too many programs.
    for label, technology in ways.items():
        kept = len(context.kept)
        take_turns(
            context.count(9, 1),
            4,
            [label],
            lambda label, technology=technology: System(context, daemon, technology, programs, label == OURS),
            lambda label, system: row.add(label, system.round()),
            [row],
        )
        context.close(keep=kept)


class System:
    """The programs of one technology on a bus."""

    def __init__(self, context, daemon, technology, programs, has_states):
        self.context, self.bus = context, context.bus(daemon)
        agent = [start_agent(context, self.bus)] if has_states else []
        style = "once" if technology is context.notifybus else "each"
        report = f"every:{NAMES}"
        self.observers = []
        # Several at once, because one after the other would take minutes.
        for first in range(0, programs, BATCH):
            batch = [
                context.observer(technology, self.bus, f"{NAME}.p{index}", NAMES, report, style=style, begun=True)
                for index in range(first, min(first + BATCH, programs))
            ]
            for observer in batch:
                observer.finish()
            self.observers += batch
        self.poster = context.poster(technology, self.bus)
        self.processes = [self.bus.router, self.poster.pid, *(program.pid for program in agent + self.observers)]
        self.foreground, self.background = list(range(programs)), []
        if has_states:
            self.background = self.foreground[programs // SHARE :]
            del self.foreground[programs // SHARE :]
            self.change("background", self.background)
        self.next = 0
        self.round()

    def change(self, state, programs):
        """Moves programs to a state."""
        set_state(self.context, self.bus, state, [self.observers[index] for index in programs])

    def processor_time(self):
        """What everybody has used so far, in nanoseconds; those included that have ended."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(map(processor_time, self.processes)) + int((ended.ru_utime + ended.ru_stime) * 1e9)

    def round(self):
        """Posts each name of some programs, in which those in the foreground have their share; µs for a post."""
        before = self.processor_time()
        if self.background:
            # The lists are queues: the program that has been in a state longest leaves it.
            leaves, enters = self.foreground.pop(0), self.background.pop(0)
            self.change("background", [leaves])
            self.change("foreground", [enters])
            self.foreground.append(enters)
            self.background.append(leaves)
        targets = self.targets()
        for index in targets:
            self.poster.ask("burst", NAMES, f"{NAME}.p{index}", NAMES, 0, 0)
            if index in self.foreground:
                self.observers[index].record()
        self.poster.route(1, NAME)
        if any(self.observers[index].has_record() for index in targets):
            raise Missing("a program in the background heard posts")
        return (self.processor_time() - before) / 1000 / len(targets) / NAMES

    def targets(self):
        """Whose names are posted: of every ten programs one that is in the foreground, if all are not."""
        self.next += 2 * SHARE
        chosen = range(self.next, self.next + 2 * SHARE)
        if not self.background:
            return [index % len(self.observers) for index in chosen]
        count = 2 * (SHARE - 1)
        return [self.background[index % len(self.background)] for index in chosen[:count]] + self.foreground[-2:]


def processor_time(pid):
    """What a process has used so far, in nanoseconds, with threads that have ended. See clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        raise Missing(f"process {pid} has ended") from None
