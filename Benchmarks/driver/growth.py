# SPDX-License-Identifier: Apache-2.0
"""What a storm of equal posts adds to the bus's memory, when each of them counts."""

import subprocess

from .idle import wait_for
from .programs import PATIENCE, Missing
from .servers import wait_until
from .turns import take_turns

NAME = "com.example.bench"
COMMANDS = "notify-post - to notify-wait -f"


def measure(context, daemon):
    """Posts as fast as the poster can, one name, to one observer, and takes the peak of the bus's memory."""
    posts = context.count(300_000, 1000)
    row = context.row("growth", "Bus memory in a storm of equal posts", "MB", daemon, reference=COMMANDS)
    row.note = f"What {posts:,} posts in a row add to the peak of {daemon}'s resident memory; all of them are heard."
    names = context.folder / "storm"
    names.write_text(f"{NAME}\n" * posts)
    ways = {COMMANDS: None} | {peer.label: peer for peer in (context.libdbus, context.sd_bus)}

    def start(label):
        bus = context.bus(daemon)
        if label == COMMANDS:
            heard = context.folder / f"heard.{daemon}"
            with open(heard, "wb") as output:
                waiter = wait_for(context, bus, NAME, output)
            return bus, waiter, heard
        observer = context.observer(ways[label], bus, NAME, 1, f"every:{posts}")
        return bus, observer, context.poster(ways[label], bus)

    def turn(label, started):
        bus, observer, other = started
        bus.forget_peak()
        before = bus.peak()
        if label == COMMANDS:
            size = other.stat().st_size + posts * (len(NAME) + 1)
            post(context, bus, names)
            wait_until(lambda: other.stat().st_size >= size, f"not all of {posts} posts were heard")
            if observer.process.poll() is not None or other.stat().st_size != size:
                raise Missing(f"more than {posts} posts were heard")
        else:
            other.ask("burst", posts, NAME, 1, 0, 0)
            observer.record()
        row.add(label, (bus.peak() - before) / 1e6)

    # A peak of memory varies little.
    take_turns(context.count(2, 1), 20, ways, start, turn, [row])


def post(context, bus, names):
    """Posts each line of a file with one command."""
    with open(names, "rb") as lines:
        command = [context.commands / "notify-post", "--address", bus.address, "-"]
        subprocess.run(command, stdin=lines, timeout=PATIENCE, check=True)
