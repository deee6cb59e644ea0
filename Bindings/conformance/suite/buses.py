# SPDX-License-Identifier: Apache-2.0
"""Private buses that can be restarted, an agent on them, and a way to one that can be cut."""

import os
import socket
import subprocess
import threading
import time

from driver import servers

# As every distribution's bus: libdbus would fall back to a cookie in the home folder.
servers.BUS_CONFIGURATION = servers.BUS_CONFIGURATION.replace("<listen>", "<auth>EXTERNAL</auth>\n<listen>")
# Services that a bus starts itself would be those of this machine.
ENVIRONMENT = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "XDG_RUNTIME_DIR": "/nonexistent"}


class Context:
    """What `driver.servers` asks for."""

    def __init__(self, build, room):
        self.launcher = str(build / "bus-launcher")
        # One program is all commands, by its name.
        self.agent = str(room / "notify-agent")
        os.symlink(build / "notify-commands", self.agent)

    def keep(self, server):
        """Everybody here ends what he has started."""


class Bus(servers.Bus):
    """A bus that keeps its address when it is restarted."""

    def __init__(self, context, kind):
        super().__init__(context, kind)
        os.chmod(self.folder, 0o755)  # Other users may connect.
        self.path = self.address[len("unix:path=") :]
        self.agent = None
        self.context = context

    def restart(self):
        """Kills it, and starts another."""
        self.stop()
        self.start()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    def start(self):
        self.process = subprocess.Popen(
            self.process.args, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log
        )
        greeting = b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n"
        servers.wait_until(lambda: self.answers(self.path, greeting), "the bus did not answer")

    def start_agent(self):
        """Starts a lifecycle agent without any settings."""
        environment = {**os.environ, **ENVIRONMENT, "XDG_CONFIG_HOME": str(self.folder), "HOME": str(self.folder)}
        environment["XDG_CONFIG_DIRS"] = str(self.folder)
        command = [self.context.agent, "--address", self.address]
        self.agent = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=self.log)

    def start_relay(self):
        """Has the agent serve sandboxes, as the bus would."""
        command = [self.context.agent, "--relay", "--address", self.address]
        subprocess.run(command, check=True, stderr=self.log, env={**os.environ, **ENVIRONMENT})

    def close(self):
        if self.agent:
            self.agent.kill()
            self.agent.wait()
        super().close()


class Passage:
    """A socket in front of a bus, whose connections can be cut while the bus lives on."""

    def __init__(self, folder, path):
        self.path, self.to = f"{folder}/passage", path
        self.ends = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.to)
            self.ends += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass(one, other):
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Ends every connection."""
        ends, self.ends = self.ends, []
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        time.sleep(0)

    def close(self):
        self.listener.close()
        self.cut()
        os.unlink(self.path)
