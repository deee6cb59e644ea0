# SPDX-License-Identifier: Apache-2.0
"""What every measurement needs: where the programs are, how much to measure, and what has to be ended afterwards."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from . import servers
from .figures import BARE, OURS, Row
from .programs import Missing, Observer, Poster, Technology

HERE = Path(__file__).resolve().parent.parent


def copies_of(commands):
    """Copies the commands, as installing does: a program starts slower from the file that the linker has written.

    They are beside the peers, since a file in a temporary folder may be in memory.
    """
    copies = HERE / ".build" / "commands"
    shutil.rmtree(copies, ignore_errors=True)
    copies.mkdir(parents=True)
    for name in ("notify-commands", "bus-launcher"):
        shutil.copy2(commands / name, copies)
    for link in commands.iterdir():
        if link.is_symlink() and link.readlink() == Path("notify-commands"):
            (copies / link.name).symlink_to("notify-commands")
    return copies


class Context:
    """One run of the benchmark."""

    def __init__(self, commands, is_check, bridges):
        self.commands = copies_of(Path(commands).resolve())
        self.launcher = str(self.commands / "bus-launcher")
        self.bridge = Path(commands) / "notify-bridge"
        # How many of them share a broker.
        self.bridges = bridges
        self.peers = HERE / ".build" / "peers"
        self.is_check = is_check
        self.folder = Path(tempfile.mkdtemp(prefix="notifybus-bench."))
        self.kept = []
        self.daemons = ["dbus-daemon"] if is_check else ["dbus-daemon", "dbus-broker"]
        self.rows = []
        # Parts that could not be measured at all.
        self.failures = []
        # Rows that can't be measured on this machine, and why.
        self.excused = {}
        self._places = {}

        ours = (str(HERE.parent / ".build" / "release" / "bench-notifybus"),)
        self.notifybus = Technology("NotifyBus", ours, interface="-")
        # Our C functions, which use the same center.
        self.notify = Technology("notify(3)", (str(self.peers / "notify"),), interface="-")
        self.commit = Technology("SQLite", (str(self.peers / "commit"),))
        self.libdbus = self._peer("libdbus")
        # The floor: no library does anything in it.
        self.bare = replace(self._peer("bare"), label=BARE)
        self.sd_bus = self._peer("sd-bus")
        self.gdbus = self._peer("GDBus")
        self.python = Technology(
            "python3-dbus", ("/usr/bin/python3", str(HERE / "Peers" / "python-dbus.py")), interface="org.example.python"
        )
        self.inotify = self._peer("inotify", "folder")
        self.redis = self._peer("Redis", "redis")
        self.mqtt = self._peer("MQTT", "mosquitto")

    @property
    def all_peers(self):
        """Everything that NotifyBus is measured against, those without a bus last."""
        on_bus = [self.libdbus, self.sd_bus, self.gdbus, self.python]
        return [*on_bus, self.inotify, self.redis, self.mqtt]

    def _peer(self, label, place="bus"):
        program = str(self.peers / label.lower())
        return Technology(label, (program,), place, interface=f"org.example.{label.lower().replace('-', '')}")

    def count(self, full, check):
        """How much to do: `full` of it, or `check` where it is only to be seen that it can be done."""
        return check if self.is_check else full

    def keep(self, something):
        """Sees to it that something is closed in the end."""
        self.kept.append(something)

    def close(self, keep=0):
        """Closes what was started after the first `keep` things, the newest first."""
        while len(self.kept) > keep:
            self.kept.pop().close()

    def row(self, *arguments, **options):
        """A new row of the table."""
        row = Row(*arguments, **options)
        self.rows.append(row)
        return row

    def excuse(self, row, reason):
        """Says that a row, which then is empty, can't be had on this machine."""
        self.excused[row.key] = reason
        row.lack(OURS, reason)

    def bus(self, daemon, **limits):
        """A new private bus."""
        return servers.Bus(self, daemon, **limits)

    def address(self, technology, bus):
        """Where a technology talks. Servers other than the bus are started at first use, and stay."""
        if technology.place == "bus":
            return bus.address
        if technology.place == "folder":
            return str(self.folder)
        return self._places[technology.place]

    def start_servers(self):
        """Starts the servers of those who do without a bus."""
        for place, start in (("redis", servers.redis), ("mosquitto", lambda context: servers.Mosquitto(context).port)):
            try:
                self._places[place] = start(self)
            except Missing as reason:
                self._places[place] = reason

    def check_installed(self, technology):
        """Raises `Missing` with the reason if a peer can't be run here."""
        program = Path(technology.command[0])
        if not program.exists():
            why = program.with_suffix(".missing")
            raise Missing(why.read_text().strip() if why.exists() else f"{program.name} was not built")
        if isinstance(self._places.get(technology.place), Missing):
            raise self._places[technology.place]

    def observer(self, technology, bus, *arguments, **options):
        """Starts an observer; it is live when this returns."""
        self.check_installed(technology)
        return Observer(self, technology, self.address(technology, bus), *arguments, **options)

    def poster(self, technology, bus, *arguments, **options):
        """Starts a poster."""
        self.check_installed(technology)
        return Poster(self, technology, self.address(technology, bus), *arguments, **options)
