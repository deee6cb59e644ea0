# SPDX-License-Identifier: Apache-2.0
"""What a post costs while others observe other names."""

from .turns import take_turns

NAME = "com.example.bench"


def measure(context, daemon):
    """The time until the bus has dealt with a post without observers, with more and more names of others."""
    counts = context.count([0, 1000, 10000, 40000], [0, 50])
    technologies = [context.notifybus, context.libdbus]
    for technology in technologies:
        how = "" if technology is context.notifybus else ", a rule with arg0 for each name"
        row = context.row(
            f"scale-{technology.label.lower()}",
            f"A post while others observe other names: {technology.label}{how}",
            "µs",
            daemon,
            reference="0 names",
            is_baseline=True,
        )
        kept = len(context.kept)
        fill_and_post(context, daemon, row, technology, counts)
        context.close(keep=kept)


def fill_and_post(context, daemon, row, technology, counts):
    """One bus for each number of names, so that they can take turns."""

    def start(label):
        count = int(label.split()[0].replace(",", ""))
        bus = context.bus(daemon)
        if count:
            style = "once" if technology is context.notifybus else "each"
            context.observer(technology, bus, "com.example.other", count, style=style)
        return (context.poster(technology, bus), count)

    def turn(label, pair):
        poster, count = pair
        # If a post takes milliseconds, fewer of them are enough.
        is_slow = count >= 1000 and technology is not context.notifybus
        posts = context.count(2_000_000 // (count + 1000) if is_slow else 2000, 50)
        row.add(label, poster.route(posts, NAME) / 1000)

    labels = [f"{count:,} names" for count in counts]
    take_turns(context.count(9, 1), 5, labels, start, turn, [row])
