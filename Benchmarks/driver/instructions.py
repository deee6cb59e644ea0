# SPDX-License-Identifier: Apache-2.0
"""How many instructions a post and a delivery take outside the kernel, counted by callgrind."""

import re
import shutil
from dataclasses import replace

from .figures import OURS
from .programs import PATIENCE, Missing, Observer, Poster

NAME = "com.example.bench"
# The signal that NotifyBus sends; all programs send the same one.
INTERFACE = f"org.notifybus.n.{NAME}"
VALGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")


def measure(context, daemon):
    """Counts whole programs at two numbers of posts; the difference leaves out how they start and end."""
    if daemon != "dbus-daemon":
        return
    few, many = context.count((200, 1200), (100, 300))
    titles = {"post": "a post", "delivery": "a delivery", "both": "a post and its delivery"}
    rows = {
        part: context.row(f"instructions-{part}", f"Instructions of {title}", "", daemon)
        for part, title in titles.items()
    }
    for row in rows.values():
        row.note = "Outside the kernel, one post at a time. All send the same signal, the one that NotifyBus sends."
    ours = context.notifybus
    ways = {OURS: ours, f"{OURS}, NotifyName made once": replace(ours, poster_style="name")}
    ways |= {peer.label: peer for peer in (context.notify, context.libdbus, context.sd_bus, context.gdbus)}
    bus = context.bus(daemon)
    for label, technology in ways.items():
        try:
            if not shutil.which("valgrind"):
                raise Missing("valgrind is not installed")
            context.check_installed(technology)
            counted = replace(technology, command=(*VALGRIND, *technology.command))
            post = (count_posts(context, bus, counted, many) - count_posts(context, bus, counted, few)) / (many - few)
            delivery = [count_deliveries(context, bus, counted, technology, count) for count in (few, many)]
            delivery = (delivery[1] - delivery[0]) / (many - few)
        except Missing as reason:
            for row in rows.values():
                row.lack(label, reason)
            continue
        for part, count in [("post", post), ("delivery", delivery), ("both", post + delivery)]:
            rows[part].add(label, count)


def count_posts(context, bus, counted, count):
    """The instructions of a program that makes so many posts."""
    poster = Poster(context, counted, bus.address, interface=INTERFACE)
    # NotifyBus posts a string, or a name made once beforehand; latency posts strings only.
    poster.ask("burst", count, NAME, 1, 1, 0)
    if poster.ask("figures") != [count, 0]:
        raise Missing("posts were merged")
    poster.process.stdin.close()
    return collected(poster)


def count_deliveries(context, bus, counted, technology, count):
    """The instructions of a program that hears so many posts, one after the other."""
    observer = Observer(context, counted, bus.address, NAME, 1, f"last:{count}", interface=INTERFACE)
    poster = Poster(context, technology, bus.address, hears=observer, interface=INTERFACE)
    if len(poster.ask("latency", count, 0, NAME)) != count:
        raise Missing("not all posts arrived")
    return collected(observer)


def collected(program):
    """What callgrind says at the end of a program."""
    program.process.wait(PATIENCE)
    program.errors.seek(0)
    numbers = re.findall(r"Collected : (\d+)", program.errors.read().decode(errors="replace"))
    if not numbers:
        raise program.gone()
    return int(numbers[-1])
