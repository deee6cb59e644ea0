# SPDX-License-Identifier: Apache-2.0
"""Names across machines: from one bus over a bridge, Mosquitto and another bridge to another bus."""

import os
import shutil
from statistics import median

from .programs import Missing, Program
from .servers import wait_until
from .turns import take_turns

NAME = "com.example.bench"
BRIDGES = "NotifyBus, two bridges"
# Microseconds between a delivery and the next post, as in 'latency'.
PAUSE = 100


def measure(context, daemon):
    """Posts on one bus and hears on the other; MQTT alone does without buses."""
    title = "Across a broker, post to callback: median"
    latency = context.row("bridge-latency", title, "µs", daemon, reference=BRIDGES)
    title = "Across a broker, posts that reach an observer"
    rate = context.row("bridge-throughput", title, "posts/s", daemon, more_is_better=True, reference=BRIDGES)
    latency.note = "MQTT: the library of mosquitto_pub and mosquitto_sub, without acknowledgement. Bridges await it."
    # The number that a bridge queues without coalescing.
    posts = context.count(3000, 100)
    ways = {BRIDGES: context.notifybus, context.mqtt.label: context.mqtt}

    def start(label):
        buses = [context.bus(daemon), context.bus(daemon)] if label == BRIDGES else [None, None]
        for index, bus in enumerate(buses):
            if bus:
                start_bridge(context, bus, f"{daemon}.{index}", "export" if index == 0 else "import")
        observers = [
            context.observer(ways[label], buses[1], NAME + ".one"),
            context.observer(ways[label], buses[1], NAME + ".many", 1, f"every:{posts}"),
        ]
        pair = (context.poster(ways[label], buses[0], hears=observers[0]), observers[1])
        turn(label, pair)
        for row in (latency, rate):
            row.figures.pop(label)
        return pair

    def turn(label, pair):
        poster, counting = pair
        latency.add(label, median(poster.ask("latency", context.count(100, 10), PAUSE, NAME + ".one")) / 1000)
        began, _ = poster.ask("burst", posts, NAME + ".many", 1, 0, 0)
        rate.add(label, posts / (counting.record()[0] - began) * 1e9)

    take_turns(context.count(15, 1), 8, ways, start, turn, [latency, rate])


def start_bridge(context, bus, place, direction):
    """Starts a bridge for one direction; it is connected when this returns."""
    if not context.bridge.exists():
        raise Missing("notify-bridge was not built")
    port = context.port()
    folder = context.folder / f"bridge.{place}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    settings = folder / "bridge.conf"
    settings.write_text(f"broker = mqtt://127.0.0.1:{port}\nrealm = bench\n{direction} = {NAME}.*\nrate = 1000000\n")
    bridge = Program(
        context,
        [context.bridge, "--config", settings, "--address", bus.address],
        "notify-bridge",
        env=os.environ | {"XDG_STATE_HOME": str(folder)},
    )

    def is_connected():
        if bridge.process.poll() is not None:
            raise bridge.gone()
        return "connected to" in bridge.said()

    wait_until(is_connected, "notify-bridge did not connect")
