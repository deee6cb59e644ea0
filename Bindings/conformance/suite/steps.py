# SPDX-License-Identifier: Apache-2.0
"""What a case consists of: each method whose name begins with `do_` is a step, with what the data gives it."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from driver import servers
from notifybus import _wire as wire

from .buses import Passage
from .programs import Failure, Program
from .raw import PATIENCE, Raw
from .surroundings import Skip, Surroundings, name_word


def word(pattern):
    """A name or a prefix as the programs read it."""
    is_prefix = pattern == "*" or pattern.endswith(".*")
    text = pattern[:-1] if is_prefix else pattern
    return ("p" if is_prefix else "n") + text.encode(errors="surrogatepass").hex()


class Run(Surroundings):
    """One case, with one binding, on one bus."""

    def __init__(self, binding, bus, case, signals, log):
        self.binding, self.bus, self.case, self.log = binding, bus, case, log
        self.signals = signals  # Where each post is sent as it should be, by name.
        self.programs, self.passage, self.proxy = [], None, None
        self.taken, self.said = {}, 0
        self.round = 0
        self.raw = Raw(bus.path)
        self.users = {}
        self.canceled = set()

    def begin(self, case):
        """Goes on with another case, with the same program."""
        for observer in list(self.taken):
            if observer not in self.canceled:
                self.do_cancel(observer)
        self.case, self.taken, self.canceled = case, {}, set()
        while self.users:
            self.users.popitem()[1].close()
        self.round += 1

    def _key(self, observer):
        """What the program calls an observer: never twice the same."""
        return f"{observer}{self.round}"

    def _sentinel(self, observer):
        return f"com.example.sentinel.{self._key(observer)}"

    def start(self):
        """Starts the program of the binding, as the case wants it."""
        if self.case.get("relay"):
            self.do_relay()
        environment = {"DBUS_SESSION_BUS_ADDRESS": self.bus.address}
        if self.case.get("by") == "passage":
            self.passage = Passage(self.bus.folder, self.bus.path)
            environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self.passage.path}"
        elif self.case.get("by") == "sandbox":
            environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self._sandbox()}"
            environment["NOTIFYBUS_RELAY"] = "yes"
        for name, value in self.case.get("environment", {}).items():
            environment[name] = value.format(
                path=self.bus.path,
                folder=self.bus.folder,
                escaped="".join(f"%{byte:02x}" for byte in self.bus.path.encode()),
            )
        command = self.binding.command
        if self.case.get("inside") == "user namespace":
            command = ["unshare", "-U", "--map-user=1000", "--", *command]
        environment = {name: value for name, value in environment.items() if value != "-"}
        self.program = Program(command, environment, self.log)
        self.programs.append(self.program)

    def _sandbox(self):
        if not shutil.which("xdg-dbus-proxy"):
            raise Skip("xdg-dbus-proxy is not installed")
        path = f"{self.bus.folder}/proxy"
        options = ["--filter", "--talk=org.notifybus.Relay1"]
        self.proxy = subprocess.Popen(["xdg-dbus-proxy", self.bus.address, path, *options])

        def accepts():
            with socket.socket(socket.AF_UNIX) as probe:
                return probe.connect_ex(path) == 0

        servers.wait_until(accepts, "xdg-dbus-proxy did not start")
        return path

    def play(self):
        """Does every step."""
        for verb, *arguments in self.case["steps"]:
            mine = [each.replace("{me}", str(os.geteuid())) if isinstance(each, str) else each for each in arguments]
            arguments = mine
            getattr(self, "do_" + verb.replace("-", "_").replace(" ", "_"))(*arguments)

    def close(self):
        """Ends what was started."""
        errors = []
        for program in self.programs:
            try:
                program.close()
            except Failure as failure:
                errors.append(failure)
        for each in (self.passage, self.raw, *self.users.values()):
            if each:
                each.close()
        if self.proxy:
            self.proxy.kill()
            self.proxy.wait()
        if errors:
            raise errors[0]

    # --- What the program is told ---

    def _tell(self, *words, expected=None):
        answer = self.program.tell(*words)
        if answer == "unsupported":
            raise Skip("the interface has nothing for it")
        if answer != expected:
            raise Failure(f"'{' '.join(words)[:80]}' gave {answer or 'no error'} instead of {expected or 'success'}")

    def do_observe(self, observer, *patterns):
        self._observe(observer, *patterns, self._sentinel(observer))

    def do_observe_only(self, observer, *patterns):
        """The same without a barrier, which needs a bus."""
        self._observe(observer, *patterns)

    def _observe(self, observer, *patterns):
        self._tell("observe", self._key(observer), *map(word, patterns))
        self.taken[observer] = len(self._names(observer))
        self.canceled.discard(observer)

    def do_observing_fails(self, kind, *patterns):
        self._tell("observe", "x", *map(word, patterns), expected=kind)

    def do_cancel(self, observer):
        self._tell("cancel", self._key(observer))
        self.canceled.add(observer)

    def do_post(self, name):
        """Posts, and looks at what the bus routes."""
        with self.raw.watching():
            self._tell("post", name_word(name))
            self._sees(name)

    def do_posting_fails(self, kind, name):
        self._tell("post", name_word(name), expected=kind)

    def do_post_in_process(self, name):
        """Posts a name that must not leave the process."""
        with self.raw.watching():
            self._tell("post", name_word(name))
            self._signal("com.example.after")
            if self._next_signal().body() != ["com.example.after"]:
                raise Failure("it left the process")

    def do_told(self, verb, name):
        self._tell(verb, name_word(name))

    def do_posted_before(self):
        """Returns when the bus has routed what the program has posted."""
        marker = "com.example.marker"
        with self.raw.watching():
            self._tell("post", name_word(marker))
            while self._next_signal().body() != [marker]:
                pass

    def do_post_many(self, count, name):
        self._tell("many", str(count), name_word(name))

    def do_slow(self):
        self._tell("slow")

    def do_fast(self):
        self._tell("fast")

    def do_settles(self):
        """Returns when the program has read what the bus has for it: both sleep, and go on sleeping.

        A process that has something to read is running or wants to, however slow the machine is.
        """

        def look():
            found = []
            for pid in (self.program.process.pid, self.bus.router):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    lines = (task / "status").read_text().splitlines()
                    found += [line for line in lines if line.startswith(("State:", "Pid:", "voluntary_ctxt"))]
            return found

        def has_settled():
            before = look()
            time.sleep(0.2)
            return before == look() and all("S (sleeping)" in line for line in before if line.startswith("State:"))

        servers.wait_until(has_settled, "the program did not come to rest")

    def do_report(self, state):
        self._tell("report", state)

    def do_stop(self):
        pid = self.program.process.pid
        os.kill(pid, signal.SIGSTOP)

        def is_stopped():
            return all("\nState:\tT" in (task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir())

        servers.wait_until(is_stopped, "the program did not stop")

    def do_continue(self):
        os.kill(self.program.process.pid, signal.SIGCONT)

    # --- What others post ---

    def _fields(self, name):
        case = self.signals[name]
        return {"path": case["path"], "interface": case["interface"], "member": "Posted", "signature": "s"}

    def _signal(self, name, raw=None):
        (raw or self.raw).signal((name,), **self._fields(name))

    def do_others_post(self, *names):
        for name in names:
            self._signal(name)

    def do_others_post_many(self, count, name):
        self.raw.signals_of(count, (name,), **self._fields(name))

    def do_user_posts(self, user, *names):
        """What another user posts; `mine` is the present one."""
        if user == "mine":
            user = os.geteuid()
        if user != os.geteuid() and os.geteuid() != 0:
            raise Skip("only root can be another user")
        if user not in self.users:
            self.users[user] = Raw(self.bus.path, user if os.geteuid() == 0 else None)
        for name in names:
            self.users[user].send(wire.SIGNAL, 1, (name,), **self._fields(name))
        self.users[user].call("GetId")

    def do_leaver_posts(self, name):
        """Posts and leaves at once, so that the bus can no longer be asked about the sender."""
        raw = Raw(self.bus.path)
        raw.send(4, 1, (name,), **self._fields(name))
        raw.call("GetId")
        raw.close()
        servers.wait_until(lambda: not self.raw.call("NameHasOwner", raw.name)[0], "the bus did not notice it")

    def do_forge(self, name, changes):
        """Sends what is no post of the name. `to them` as the destination is each connection of the program."""
        fields = {**self._fields(name), **changes}
        arguments = tuple(fields.pop("arguments", (name,)))
        if fields.get("destination") != "to them":
            return self.raw.signal(arguments, **fields)
        for each in self._connections():
            self.raw.signal(arguments, **{**fields, "destination": each})
        return None

    # --- What the program hears ---

    def _barrier(self, observer):
        """Returns when all that was posted before has been heard, or never will be.

        The program may have to ask the bus who has posted, and posts of others pass those that wait for the answer. So
        everybody who may be asked about ends with a post that the program hears in turn.
        """
        for raw in (self.raw, *self.users.values()):
            before = self._count(observer)
            self._signal(self._sentinel(observer), raw)
            self.program.wait_for(lambda _: self._count(observer) > before, f"what was posted for '{observer}'")

    def _count(self, observer):
        return self.program.count(self._key(observer), name_word(self._sentinel(observer)))

    def _names(self, observer):
        heard = self.program.heard(self._key(observer))
        return [name for name in heard if not name.startswith("com.example.sentinel.")]

    def _new(self, observer):
        names = self._names(observer)
        taken, self.taken[observer] = self.taken[observer], len(names)
        return names[taken:]

    def do_hears(self, observer, *names):
        """It has heard exactly these since it was asked last, in this order."""
        self._barrier(observer)
        found = self._new(observer)
        if found != list(names):
            raise Failure(f"'{observer}' heard {found[:6]} ({len(found)}) instead of {list(names)[:6]} ({len(names)})")

    def do_hears_each_once(self, observer, *names):
        """It has heard each of these once, in any order."""
        self._barrier(observer)
        if sorted(found := self._new(observer)) != sorted(names):
            raise Failure(f"'{observer}' heard {found[:6]} ({len(found)}) instead of each of {list(names)[:6]} once")

    def do_said(self, observer, name):
        """It hears this without a bus."""
        self.program.wait_for(lambda _: name in self.program.heard(self._key(observer)), name)

    def do_hears_merged(self, observer, least, most, *names):
        """It has heard each of these, and all together so often. Merged posts have no order among names."""
        self._barrier(observer)
        found = self._new(observer)
        if set(found) != set(names) or not least <= len(found) <= most:
            raise Failure(f"'{observer}' heard {sorted(set(found))[:6]}, {len(found)} times, not {least} to {most}")

    def do_hears_nothing_after_cancel(self, observer):
        """Another observer of the same program is the barrier."""
        if found := self._new(observer):
            raise Failure(f"'{observer}' heard {found[:6]}")

    def do_event(self, *words):
        """It has said this since it was asked last."""
        start = self.said

        def found(events):
            for place in range(start, len(events)):
                if events[place] == list(words):
                    return place + 1
            return None

        self.said = self.program.wait_for(found, " ".join(words))

    # --- What the bus routes ---

    def _next_signal(self):
        try:
            return self.raw.signals.get(timeout=PATIENCE)
        except Exception:
            raise Failure("nothing was posted") from None

    def _sees(self, name):
        message = self._next_signal()
        expected = {**self._fields(name), "destination": None}
        for field, value in expected.items():
            if message.get(field) != value:
                raise Failure(f"the post has the {field} {message.get(field)!r} instead of {value!r}")
        if message.body() != [name]:
            raise Failure(f"the post has the body {message.body()!r}")
