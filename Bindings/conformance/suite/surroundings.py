# SPDX-License-Identifier: Apache-2.0
"""Steps that concern the bus and the agent."""

import time

from driver import servers

from .programs import Failure
from .raw import PATIENCE, Raw

AGENT, AGENT_PATH = "org.notifybus.Agent1", "/org/notifybus/Agent1"


class Skip(Exception):
    """A case can't be had here."""


def name_word(name):
    """A name as the programs read it."""
    return "n" + name.encode(errors="surrogatepass").hex()


class Surroundings:
    """The part of a run that is not about names."""

    # --- The bus ---

    def _again(self):
        self.raw.close()
        self.raw = Raw(self.bus.path)

    def do_restart_bus(self, times=1):
        for _ in range(times):
            self.bus.restart()
        self._again()

    def do_restarts(self, times, observer, name):
        """So many restarts, after each of which a post is heard."""
        for _ in range(times):
            self.bus.restart()
            self._again()
            self.do_registered_again(observer)
            self._signal(name)
            self.do_hears(observer, name)

    def do_stop_bus(self):
        self.bus.stop()

    def do_start_bus(self):
        self.bus.start()
        self._again()

    def do_cut(self):
        self.passage.cut()

    def do_registered_again(self, observer):
        """Posts until that is heard."""
        before = self._count(observer)
        deadline = time.monotonic() + PATIENCE
        while self._count(observer) == before:
            if time.monotonic() > deadline:
                raise Failure("it has not registered again")
            self._signal(self._sentinel(observer))
            time.sleep(0.01)

    def do_post_again(self, name):
        """Posts until that succeeds, since it may fail while the bus is away."""
        deadline = time.monotonic() + PATIENCE
        with self.raw.watching():
            while self.program.tell("post", name_word(name)):
                if time.monotonic() > deadline:
                    raise Failure("it has not connected again")
                time.sleep(0.01)
            self._sees(name)

    # --- The lifecycle ---

    def do_agent(self):
        self.bus.start_agent()
        servers.wait_until(lambda: self.raw.call("NameHasOwner", AGENT)[0], "the agent did not start")

    def do_relay(self):
        """Has an agent serve sandboxes."""
        self.do_agent()
        self.bus.start_relay()

    def do_bus_answers(self):
        self.raw.call("GetId")

    def do_known_to_agent(self):
        """Returns when the program has registered."""
        pid = self.program.process.pid

        def is_known():
            listed = self.raw.call("List", to=AGENT, path=AGENT_PATH)[0]
            return any(entry["pid"] == pid for entry in map(dict, listed))

        servers.wait_until(is_known, "the program did not register")

    def do_has_rules(self, count):
        """The bus has so many rules for posts from the program, at last."""

        def has_them():
            try:
                found = self.raw.call("GetAllMatchRules", interface="org.freedesktop.DBus.Debug.Stats")[0]
            except RuntimeError:
                raise Skip("the bus does not tell its rules") from None
            rules = [rule for name in self._connections() for rule in found.get(name, [])]
            return sum("Posted" in rule for rule in rules) == count

        servers.wait_until(has_them, f"there were not {count} rules")

    def do_stranger_calls(self):
        """A client that is not the agent wants to change the state."""
        for name in self._connections():
            options = {"to": name, "path": "/org/notifybus/Observer1", "interface": "org.notifybus.Observer1"}
            for member, signature, arguments in (("SetState", "su", ("background", 0)), ("Deliver", "as", (["x"],))):
                try:
                    self.raw.call(member, *arguments, signature=signature, **options)
                except RuntimeError:
                    continue
                raise Failure(f"{name} did what a stranger said")

    def _connections(self):
        """The unique names of the program's connections."""
        for name in self.raw.call("ListNames")[0]:
            if name.startswith(":"):
                if self.raw.call("GetConnectionUnixProcessID", name)[0] == self.program.process.pid:
                    yield name

    def do_kill_agent(self):
        """Returns when the bus knows that the agent is gone: another one can have its name, and isn't taken for it."""
        self.bus.agent.kill()
        self.bus.agent.wait()
        servers.wait_until(lambda: not self.raw.call("NameHasOwner", AGENT)[0], "the bus kept the dead agent")

    def do_put_in(self, state):
        """Has the agent change the state of the program."""
        if not self.proxy:
            self.do_known_to_agent()
        target = f"pid:{(self.proxy or self.program.process).pid}"
        arguments = (target, state, False)
        count = self.raw.call("SetState", *arguments, signature="ssb", to=AGENT, path=AGENT_PATH)[0]
        if not count:
            raise Failure("the agent does not know the program")
