# SPDX-License-Identifier: Apache-2.0
"""The measuring programs, and how to speak with them. Peers/harness.c says what they understand."""

import os
import select
import signal
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

# How long to wait for what must come, in seconds.
PATIENCE = 120
RECORD = struct.Struct("=qq")


class Missing(Exception):
    """Something could not be measured; the text says why."""


@dataclass(frozen=True)
class Technology:
    """A way to tell programs that something has happened."""

    label: str
    # The program and the arguments that follow those of harness.c.
    command: tuple
    # What it connects to: a bus, or a server of its own.
    place: str = "bus"
    observer_style: str = ""
    poster_style: str = ""
    interface: str = ""


def limit_life(command, user=None):
    """The command, to be killed when this process ends, however it does; as another user, if this one may."""
    identity = [] if user is None else ["--reuid", user, "--clear-groups"]
    return ["setpriv", *map(str, identity), "--pdeathsig", "KILL", *map(str, command)]


def is_readable(descriptor, seconds):
    """Whether there is something to read, now or in so many seconds. Unlike select(2), poll(2) takes any descriptor."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class Program:
    """A process that writes what it has measured."""

    def __init__(self, context, command, label, user=None, **streams):
        self.label = label
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(limit_life(command, user), stderr=self.errors, **streams)
        context.keep(self)

    @property
    def pid(self):
        """The process."""
        return self.process.pid

    def status(self, field):
        """A number out of /proc/PID/status, in kB where it is memory."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1])
        raise Missing(f"{self.label} has ended")

    def resident(self):
        """Its resident memory, in bytes."""
        return self.status("VmRSS") * 1024

    def voluntary_switches(self):
        """How often its threads have gone to sleep, all together."""
        switches = 0
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                lines = (thread / "status").read_text().splitlines()
            except OSError:
                # It has ended since.
                continue
            for line in lines:
                if line.startswith("voluntary_ctxt_switches"):
                    switches += int(line.split()[1])
        return switches

    def gone(self):
        """The reason that it has nothing more to say."""
        self.process.wait(PATIENCE)
        said = " ".join(self.said().split())[-200:]
        return Missing(f"{self.label} ended: {said or self.process.returncode}")

    def said(self):
        """What it has written to standard error."""
        # Opened anew, since the process, which is still writing, shares its file offset.
        return os.pread(self.errors.fileno(), 1 << 16, 0).decode(errors="replace")

    def read(self, descriptor, size):
        """What it writes next."""
        if not is_readable(descriptor, PATIENCE):
            raise Missing(f"{self.label} said nothing for {PATIENCE} s")
        if data := os.read(descriptor, size):
            return data
        raise self.gone()

    def close(self):
        """Ends it, stopped or not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream:
                stream.close()


class Observer(Program):
    """A process that observes. When this returns, it is live, unless it is `begun` only.

    `setup` is how long that took, in seconds.
    """

    def __init__(
        self,
        context,
        technology,
        address,
        prefix,
        count=1,
        report="each",
        style=None,
        interface=None,
        begun=False,
        user=None,
    ):
        if style is None:
            style = technology.observer_style
        command = [*technology.command, "observer", address, interface or technology.interface, prefix, count, report]
        super().__init__(
            context,
            [*command, style] if style else command,
            technology.label,
            user,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.records = self.process.stdout.fileno()
        if not begun:
            self.finish()

    def finish(self):
        """Waits until it is live."""
        self.setup = self.record()[1] / 1e9

    def has_record(self, seconds=0):
        """Whether there is a record to be read, now or in so many seconds."""
        return is_readable(self.records, seconds)

    def record(self):
        """The next record: a time in nanoseconds, and a count."""
        data = b""
        while len(data) < RECORD.size:
            data += self.read(self.records, RECORD.size - len(data))
        return RECORD.unpack(data)


class Poster(Program):
    """A process that posts. `hears` is the observer whose records it waits for when it measures latency."""

    def __init__(self, context, technology, address, hears=None, interface=None):
        command = [*technology.command, "poster", address, interface or technology.interface]
        if technology.poster_style:
            command.append(technology.poster_style)
        super().__init__(
            context,
            command,
            technology.label,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=[hears.records] if hears else [],
            env=os.environ | {"RECORDS_FD": str(hears.records if hears else -1)},
        )
        self.waiting = b""

    def begin(self, *words):
        """Gives a command."""
        try:
            self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        except OSError:
            raise self.gone() from None

    def answer(self):
        """The numbers it answers."""
        while b"\n" not in self.waiting:
            self.waiting += self.read(self.process.stdout.fileno(), 1 << 16)
        line, _, self.waiting = self.waiting.partition(b"\n")
        return [int(number) for number in line.split()]

    def ask(self, *words):
        """Gives a command and waits for the answer."""
        self.begin(*words)
        return self.answer()

    def route(self, count, name):
        """Posts a name until the bus has dealt with all posts; nanoseconds a post."""
        posted, merged = self.ask("figures")
        nanoseconds = self.ask("route", count, name)[0]
        if (now := self.ask("figures")) != [posted + count, merged]:
            raise Missing(f"of {count} posts {now[0] - posted} were made, {now[1] - merged} of them merged")
        return nanoseconds / count
