# SPDX-License-Identifier: Apache-2.0
"""What it costs to observe: one name and no longer, and ten thousand in one process."""

from statistics import median

from .figures import OURS
from .turns import take_turns

NAME = "com.example.bench"


def measure(context, daemon):
    """Adds and cancels one observer after the other, each of a new name."""
    count = context.count(200, 10)
    adding = context.row("add", "To add an observer that is live", "µs", daemon)
    cancelling = context.row("cancel", "To cancel it", "µs", daemon)
    cancelling.note = "The peers leave it to the bus when that takes effect, as their documentation suggests."
    bus = context.bus(daemon)
    ways = {OURS: context.notifybus}
    ways |= {peer.label: peer for peer in (context.libdbus, context.sd_bus, context.gdbus)}

    def start(label):
        poster = context.poster(ways[label], bus)
        poster.ask("register", 5, NAME)
        return poster

    def turn(label, poster):
        added, cancelled = poster.ask("register", count, NAME)
        adding.add(label, added / count / 1000)
        cancelling.add(label, cancelled / count / 1000)

    take_turns(context.count(25, 1), 6, ways, start, turn, [adding, cancelling])
    context.close(keep=context.kept.index(bus))
    measure_many(context, daemon)


def measure_many(context, daemon):
    """Ten thousand observers of as many names in one process, and a post to one of them."""
    count = context.count(10000, 50)
    many = f"{count:,} observers in one process"
    setup = context.row("many-setup", f"{many}: until all are live", "ms", daemon)
    memory = context.row("many-memory", f"{many}: its resident memory", "MB", daemon)
    latency = context.row("many-latency", f"{many}: post to callback of one of them", "µs", daemon)
    setup.note = "'In one call' is addObserver(for: .names(…))."
    ours = context.notifybus
    ways = {OURS: (ours, "callback"), f"{OURS}, in one call": (ours, "once")}
    ways |= {peer.label: (peer, "each") for peer in (context.libdbus, context.sd_bus, context.gdbus)}

    def start(label):
        technology, style = ways[label]
        bus = context.bus(daemon)
        observer = context.observer(technology, bus, NAME, count, style=style)
        setup.add(label, observer.setup * 1000)
        poster = context.poster(technology, bus, hears=observer)
        poster.ask("latency", 5, 100, f"{NAME}.n{count // 2}")
        memory.add(label, observer.resident() / 1e6)
        return poster

    def turn(label, poster):
        times = poster.ask("latency", context.count(50, 5), 100, f"{NAME}.n{count // 2}")
        latency.add(label, median(times) / 1000)

    take_turns(context.count(10, 1), 4, ways, start, turn, [setup, memory, latency])
