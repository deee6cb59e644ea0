# SPDX-License-Identifier: Apache-2.0
"""Names across machines: each with a bus and a bridge of its own, all of them with one Mosquitto."""

import os
import subprocess
from dataclasses import replace
from statistics import median

from . import servers
from .latency import PAUSE
from .programs import PATIENCE, Missing, Observer, Poster, Program
from .servers import wait_until
from .turns import take_turns

NAME = "com.example.bench"
MQTT = "MQTT alone"
FEWEST = 2


def measure(context, daemon):
    """Posts on the bus of one machine, and hears on another's and on all others'; MQTT alone does without buses."""
    many = context.bridges
    labels = {f"{count} bridges": count for count in (many, FEWEST)} | {MQTT: many}
    us = f"{many} bridges"
    rows = {
        key: context.row(f"bridges-{key}", title, unit, daemon, more_is_better=more, reference=us)
        for key, title, unit, more in [
            ("latency", "Across a broker, post to callback on one machine: median", "µs", False),
            ("throughput", "Across a broker, posts that reach one machine", "posts/s", True),
            ("all", "Across a broker, a post until all other machines have heard it", "ms", False),
        ]
    }
    title, one_of_few = "Resident memory across machines", f"a bridge of {FEWEST}"
    memory = context.row("bridges-memory", title, "MB", daemon, reference=one_of_few, is_baseline=True)
    hub = Hub(context)
    rows["latency"].note = (
        f"{hub.note} MQTT: libmosquitto without acknowledgement and no bus, {many} clients; bridges await it."
    )
    memory.note = "Of a bridge, the median; of the broker, all."
    # The number that a bridge queues without coalescing.
    posts = context.count(3000, 100)
    fleets = {}

    def start(label):
        fleet = fleets[label] = Fleet(context, daemon, hub, labels[label], label == MQTT, posts)
        turn(label, fleet)
        for row in rows.values():
            row.figures.pop(label)
        return fleet

    def turn(label, fleet):
        times = fleet.poster.ask("latency", context.count(100, 10), PAUSE, f"{NAME}.one")
        rows["latency"].add(label, median(times) / 1000)
        began, _ = fleet.poster.ask("burst", posts, f"{NAME}.many", 1, 0, 0)
        rows["throughput"].add(label, posts / (fleet.counting.record()[0] - began) * 1e9)
        began, _ = fleet.poster.ask("burst", 1, f"{NAME}.all", 1, 0, 0)
        rows["all"].add(label, (max(one.record()[0] for one in fleet.everyone) - began) / 1e6)

    take_turns(context.count(15, 1), 12, labels, start, turn, [*rows.values(), memory])
    for label, fleet in fleets.items():
        if fleet.bridges:
            memory.add(f"a bridge of {len(fleet.bridges)}", median(one.resident() for one in fleet.bridges) / 1e6)
        memory.add(f"Mosquitto, {label}", fleet.broker.resident() / 1e6)


class Fleet:
    """Machines that share a broker. The first one posts."""

    def __init__(self, context, daemon, hub, count, is_plain, posts):
        self.context, self.hub = context, hub
        self.broker = servers.Mosquitto(context, hub.inside)
        self.bridges = []
        if is_plain:
            addresses, technology = [self.broker.port] * count, hub.plain(context.mqtt)
        else:
            buses = [context.bus(daemon) for _ in range(count)]
            self.bridges = [self.start_bridge(index, bus, bus is buses[-1]) for index, bus in enumerate(buses)]
            for bridge in self.bridges:
                wait_until(lambda bridge=bridge: is_connected(bridge), "notify-bridge did not connect")
            addresses, technology = [bus.address for bus in buses], context.notifybus
        context.check_installed(context.mqtt)
        last = addresses[-1]
        hearing = Observer(context, technology, last, f"{NAME}.one")
        self.counting = Observer(context, technology, last, f"{NAME}.many", 1, f"every:{posts}")
        self.everyone = [Observer(context, technology, address, f"{NAME}.all") for address in addresses[1:]]
        self.poster = Poster(context, technology, addresses[0], hears=hearing)

    def start_bridge(self, index, bus, is_last):
        """Starts the bridge of a machine: the first one exports, the last one hears every name, the others one."""
        if not self.context.bridge.exists():
            raise Missing("notify-bridge was not built")
        folder = bus.folder / "bridge"
        folder.mkdir()
        settings = folder / "bridge.conf"
        names = f"export = {NAME}.*" if index == 0 else f"import = {NAME}.{'*' if is_last else 'all'}"
        broker = f"mqtt://{self.hub.address}:{self.broker.port}"
        settings.write_text(f"broker = {broker}\nrealm = bench\nrate = 1000000\n{names}\n")
        command = [self.context.bridge, "--config", settings, "--address", bus.address]
        return self.hub.start(command, "notify-bridge", env=os.environ | {"XDG_STATE_HOME": str(folder)})


class Hub:
    """The network that the machines share: a network namespace for each, or loopback where that is not possible."""

    def __init__(self, context):
        self.context, self.count = context, 0
        self.address, self.inside, self.note = "127.0.0.1", [], "All on loopback."
        # With an address of its own, which otherwise changes with each machine.
        script = (
            "ip link set lo up && ip link add hub address 02:00:00:00:00:01 up type bridge && "
            "ip addr add 10.77.0.1/16 dev hub && echo up >&2 && exec sleep infinity"
        )
        hub = Program(context, ["unshare", "--net", "sh", "-c", script], "the hub")
        wait_until(lambda: "up" in hub.said().split() or hub.process.poll() is not None, "there was no hub")
        if hub.process.poll() is None:
            self.address, self.inside = "10.77.0.1", ["nsenter", f"--net=/proc/{hub.pid}/ns/net"]
            self.note = "Each bridge in a network namespace of its own, on a virtual switch with the broker's."

    def start(self, command, label, **options):
        """Starts a program on a machine of its own."""
        if not self.inside:
            return Program(self.context, command, label, **options)
        self.count += 1
        script = 'echo apart >&2; read -r _ && ip addr add "$1" dev eth0 && ip link set eth0 up && shift && exec "$@"'
        address = f"10.77.{1 + self.count // 250}.{1 + self.count % 250}/16"
        machine = Program(
            self.context,
            ["unshare", "--net", "sh", "-c", script, "sh", address, *command],
            label,
            stdin=subprocess.PIPE,
            **options,
        )
        # Not before: the link would be this machine's.
        wait_until(lambda: "apart" in machine.said().split(), "there was no network namespace")
        link = ["ip", "link", "add", f"m{self.count}", "up", "master", "hub", "type", "veth", "peer", "name", "eth0"]
        subprocess.run([*self.inside, *link, "netns", str(machine.pid)], timeout=PATIENCE, check=True)
        machine.process.stdin.write(b"\n")
        machine.process.stdin.flush()
        return machine

    def plain(self, technology):
        """A technology beside the broker, which it reaches on loopback."""
        return replace(technology, command=(*self.inside, *technology.command))


def is_connected(bridge):
    """Whether a bridge has reached the broker."""
    if bridge.process.poll() is not None:
        raise bridge.gone()
    return "connected to" in bridge.said()
