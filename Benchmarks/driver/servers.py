# SPDX-License-Identifier: Apache-2.0
"""What the measuring programs talk to: private buses on both daemons, a Redis server, a Mosquitto."""

import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .programs import PATIENCE, Missing

BUS_CONFIGURATION = """<busconfig>
<type>session</type>
<listen>unix:path={path}</listen>
<policy context="default">
  <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy>
{limits}
</busconfig>
"""

# As in the session.conf that D-Bus installs.
SESSION_LIMITS = {
    "max_incoming_bytes": 1000000000,
    "max_outgoing_bytes": 1000000000,
    "max_message_size": 1000000000,
    "max_completed_connections": 100000,
    "max_incomplete_connections": 10000,
    "max_connections_per_user": 100000,
    "max_match_rules_per_connection": 50000,
    "max_replies_per_connection": 50000,
}


def wait_until(condition, what):
    """Returns the first true value of `condition`; raises `Missing` if there is none within `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Missing(f"{what} within {PATIENCE} s")
        time.sleep(0.005)
    return value


def _children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _descendant(pid, program):
    """The process below `pid` that runs `program`; the kernel keeps 15 bytes of its name."""
    for child in _children(pid):
        try:
            if Path(f"/proc/{child}/comm").read_text().strip() == program[:15]:
                return child
        except OSError:
            continue
        if found := _descendant(child, program):
            return found
    return None


class Server:
    """A daemon in a folder of its own. It ends with `close`, and with this process however that ends."""

    def __init__(self, context, arguments, folder):
        self.folder = folder
        self.log = open(folder / "log", "wb")
        # At the end of its standard input the launcher ends everything that it started.
        self.process = subprocess.Popen(
            [context.launcher, *arguments], stdin=subprocess.PIPE, stdout=self.log, stderr=self.log
        )
        context.keep(self)

    def said(self):
        """What the daemon has written, in one line."""
        return " ".join((self.folder / "log").read_text(errors="replace").split())[-300:]

    def answers(self, address, greeting):
        """Whether something is said in answer to a greeting."""
        if self.process.poll() is not None:
            raise Missing(f"it ended and said: {self.said()}")
        try:
            with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as client:
                client.settimeout(1)
                client.connect(address)
                client.sendall(greeting)
                return bool(client.recv(16))
        except OSError:
            return False

    def close(self):
        """Ends the daemon and removes its folder."""
        self.process.stdin.close()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Bus(Server):
    """A private bus. `kind` is dbus-daemon or dbus-broker, `router` the process that routes, `limits` what differs."""

    def __init__(self, context, kind, **limits):
        folder = Path(tempfile.mkdtemp(prefix="notifybus-bench."))
        path, configuration = str(folder / "bus"), folder / "bus.conf"
        lines = "\n".join(f'<limit name="{name}">{value}</limit>' for name, value in (SESSION_LIMITS | limits).items())
        configuration.write_text(BUS_CONFIGURATION.format(path=path, limits=lines))
        if kind == "dbus-broker":
            arguments = [path, str(configuration)]
        else:
            arguments = ["--exec", kind, f"--config-file={configuration}", "--nofork", "--nopidfile", "--nosyslog"]
        super().__init__(context, arguments, folder)
        self.kind, self.address = kind, f"unix:path={path}"
        greeting = b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n"
        wait_until(lambda: self.answers(path, greeting), f"{kind} did not answer")
        self.router = wait_until(lambda: _descendant(self.process.pid, kind), f"there was no process of {kind}")

    def forget_peak(self):
        """Makes the resident memory of now the peak."""
        Path(f"/proc/{self.router}/clear_refs").write_text("5")

    def peak(self):
        """The peak of the resident memory of the process that routes, in bytes."""
        status = Path(f"/proc/{self.router}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def clients(self):
        """The process of each connection, by unique name; not that of the command that asks."""
        ask = ["dbus-send", f"--bus={self.address}", "--print-reply", "--dest=org.freedesktop.DBus", "/"]

        def call(member, *arguments):
            command = [*ask, f"org.freedesktop.DBus.{member}", *arguments]
            return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout

        processes = {}
        for name in re.findall(r'"(:[0-9.]+)"', call("ListNames")):
            if found := re.search(r"uint32 ([0-9]+)", call("GetConnectionUnixProcessID", f"string:{name}")):
                processes[name] = int(found[1])
        return processes

    def resident(self):
        """The resident memory of the process that routes, in bytes."""
        return int(Path(f"/proc/{self.router}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def redis(context):
    """Starts a Redis server on a Unix socket that keeps nothing; gives the path of the socket."""
    if not shutil.which("redis-server"):
        raise Missing("redis-server is not installed")
    folder = Path(tempfile.mkdtemp(prefix="notifybus-bench."))
    path = str(folder / "redis")
    options = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", str(folder)]
    server = Server(context, ["--exec", "redis-server", *options], folder)
    wait_until(lambda: server.answers(path, b"PING\r\n"), "redis-server did not answer")
    return path


def free_port():
    """A port of this machine on which no process listens, and that the kernel gives to no client meanwhile."""
    for port in random.sample(range(10000, 32000), 1000):
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
                return port
        except OSError:
            continue
    raise Missing("there is no free port")


class Mosquitto(Server):
    """A Mosquitto on a free port, of this machine or of the network namespace that the command `inside` enters."""

    def __init__(self, context, inside=()):
        if not shutil.which("mosquitto"):
            raise Missing("mosquitto is not installed")
        folder = Path(tempfile.mkdtemp(prefix="notifybus-bench."))
        self.port = str(free_port())
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"listener {self.port} {'0.0.0.0' if inside else '127.0.0.1'}\nallow_anonymous true\n"
            f"set_tcp_nodelay true\nmax_queued_messages 0\n{'user root' if os.geteuid() == 0 else ''}\n"
        )
        super().__init__(context, ["--exec", *inside, "mosquitto", "-c", str(settings)], folder)

        def is_running():
            if self.process.poll() is not None:
                raise Missing(f"mosquitto ended and said: {self.said()}")
            return "running" in self.said()

        wait_until(is_running, "mosquitto did not start")
        self.broker = wait_until(lambda: _descendant(self.process.pid, "mosquitto"), "there was no mosquitto")

    def resident(self):
        """The resident memory, in bytes."""
        return int(Path(f"/proc/{self.broker}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
