#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts real programs on a real bus, and does to them what may happen to programs, by a seed; see judge.py.

Usage: chaos.py --build FOLDER [--daemon dbus-daemon|dbus-broker] [--seed N] [--seconds N] [--only ACTS] [--without ACTS]
"""

import argparse
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import focus
import judge
import plan
from facts import SECOND

HERE = pathlib.Path(__file__).resolve().parent
# How long anything that must come may take, in seconds.
PATIENCE = 60
# What people wait for a command.
COMMAND = {"freeze": ["suspend", "--freeze"]}
# How soon a program naps, once it has not the focus.
NAP = "".join(f"[nap]\napps = {who}\nafter = 100ms\nstate = {plan.OBSERVERS[who]['nap']}\n" for who in plan.nappers())


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Failure(Exception):
    """The run itself went wrong, which is neither right nor wrong of what is judged."""


class Unanswered(Exception):
    """A process has not done something that it must have done within what anybody would wait."""


class Room:
    """A folder for one run, with the bus in it, and the driver's own record."""

    def __init__(self, build, daemon, broken):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="notifybus-chaos-"))
        self.build, self.daemon = build, daemon
        # Builds for release lack what only tests need.
        self.launcher, self.swift_witness = (
            next(path for path in (build / name, build.parent / "debug" / name) if path.exists())
            for name in ("bus-launcher", "chaos-witness")
        )
        self.socket = self.path / "bus"
        self.address = f"unix:path={self.socket}"
        self.lock = threading.Lock()
        self.journal = open(self.path / "driver.log", "a", buffering=1)
        self.environment = {
            name: value for name, value in os.environ.items()
            if name in ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
        }
        self.environment |= {
            "DBUS_SESSION_BUS_ADDRESS": self.address, "NOTIFYBUS_ADDRESS": self.address,
            "XDG_CONFIG_HOME": str(self.path / "config"), "XDG_CONFIG_DIRS": str(self.path / "config"),
            "XDG_RUNTIME_DIR": str(self.path), "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.path}/none",
            "SWIFT_BACKTRACE": "enable=no", "LD_LIBRARY_PATH": str(self.path),
        }
        if broken:
            self.environment["NOTIFYBUS_BREAK"] = broken
        (self.path / "config/notifybus").mkdir(parents=True)
        (self.path / "config/notifybus/nap.conf").write_text(NAP)
        self.focus = focus.Focus(self.path / "sway")
        self.environment |= {"SWAYSOCK": self.focus.path, "WAYLAND_DISPLAY": "wayland-1"}
        for name in ("libnotifybus.so", "libnotifybus.so.0"):
            (self.path / name).symlink_to(build / "libnotifybus.so")
        for name in ("notify-agent", "notify-lifecycle"):
            (self.path / name).symlink_to(build / "notify-commands")
        subprocess.run(
            ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-I", HERE.parent.parent / "Sources/Darwin/CDarwinNotify/include",
             HERE / "witness.c", "-o", self.path / "witness", self.path / "libnotifybus.so"], check=True
        )
        # dbus-broker counts by user, so that any program could be the one beyond it.
        limit = f'<limit name="max_match_rules_per_connection">{plan.LIMIT}</limit>' if daemon == "dbus-daemon" else ""
        (self.path / "bus.conf").write_text(f"""<busconfig>
<type>session</type>
<listen>{self.address}</listen>
<policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy>
{limit}
</busconfig>
""")

    def note(self, **what):
        with self.lock:
            self.journal.write(json.dumps(what) + "\n")

    def log(self, name):
        return open(self.path / name, "ab")


def note_starvation(room):
    """Notes when two milliseconds of work take a hundred: the programs then get as little of the processors."""
    while True:
        before, work = now(), time.thread_time()
        while time.thread_time() < work + 0.002:
            pass
        if now() - before > 0.1 * SECOND:
            room.note(act="starved", who="world", before=before, after=now(), status=0)
        time.sleep(0.1)


class Bus:
    """The daemon, below a launcher that ends with its standard input."""

    def __init__(self, room):
        self.room, self.launcher = room, None
        self.start()

    def start(self):
        room = self.room
        room.socket.unlink(missing_ok=True)
        arguments = [room.socket, room.path / "bus.conf"]
        if room.daemon == "dbus-daemon":
            arguments = ["--exec", room.daemon, f"--config-file={room.path}/bus.conf", "--nofork", "--nopidfile", "--nosyslog"]
        with room.log("bus.txt") as log:
            self.launcher = subprocess.Popen(
                [room.launcher, *arguments], stdin=subprocess.PIPE, stdout=log, stderr=log,
                env=room.environment, start_new_session=True,
            )
        until("the bus answers", self.answers)
        self.router = until("the bus is found", lambda: descendant(self.launcher.pid, room.daemon))

    def answers(self):
        import socket
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.settimeout(5)
                client.connect(str(self.room.socket))
                client.sendall(b"\0AUTH EXTERNAL %s\r\n" % str(os.geteuid()).encode().hex().encode())
                return client.recv(100).startswith(b"OK")
            except OSError:
                return False

    def kill(self):
        os.kill(self.router, signal.SIGKILL)
        self.launcher.stdin.close()
        self.launcher.wait()


def until(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {PATIENCE} s")
        time.sleep(0.01)
    return value


def descendant(parent, name):
    for child in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        try:
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name[:15]:
                return int(child)
            if found := descendant(child, name):
                return found
        except OSError:
            pass
    return None


def state_of(process):
    """The letter in /proc, as T for a stopped one."""
    return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


class Program:
    """An observer or a poster, which is told what to do on its standard input."""

    def __init__(self, room, who, kind, relay=False, centers=1):
        self.room, self.who = room, who
        program = room.path / "witness" if kind == "c" else room.swift_witness
        environment = room.environment | ({"NOTIFYBUS_RELAY": "yes"} if relay else {})
        with room.log(f"{who}.txt") as log:
            self.process = subprocess.Popen(
                [program, room.path / f"{who}.log", room.socket, *([str(centers)] if centers > 1 else [])], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True,
            )
        self.pid, self.count, self.lock = self.process.pid, 0, threading.Lock()
        os.set_blocking(self.process.stdin.fileno(), True)

    def say(self, *lines):
        try:
            with self.lock:
                self.process.stdin.write("".join(line + "\n" for line in lines).encode())
                self.process.stdin.flush()
        except OSError:
            raise Failure(f"{self.who} ended with {self.process.poll()}")

    def sync(self):
        """Returns when it has done everything before."""
        self.count += 1
        self.say(f"sync {self.count}")
        expected, text = f"{self.count}\n".encode(), b""
        deadline = time.monotonic() + PATIENCE
        while not text.endswith(expected):
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                if state_of(self.pid) in "Tt":
                    raise Unanswered(f"a program that stays stopped: {self.who}")
                raise Unanswered(f"a call without an answer: {self.who} is still busy after {PATIENCE} s")
            more = os.read(self.process.stdout.fileno(), 1000)
            if not more:
                raise Failure(f"{self.who} ended with {self.process.wait()}")
            text += more


class Agent:
    """The agent, which comes and goes."""

    def __init__(self, room):
        self.room, self.process = room, None
        self.start()

    def start(self, *options):
        with self.room.log("agent.txt") as log:
            new = subprocess.Popen(
                [self.room.path / "notify-agent", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.room.environment, start_new_session=True,
            )
        old, self.process = self.process, new
        until("the agent has its name", lambda: self.status() or new.poll() is not None)
        if old:
            old.wait()
        # As the bus would for a program that registers there; no program does for some seconds.
        subprocess.run(
            [self.room.path / "notify-agent", "--relay"], env=self.room.environment, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=PATIENCE, check=False,
        )

    def status(self):
        result = subprocess.run(
            [self.room.path / "notify-lifecycle", "status"], env=self.room.environment, capture_output=True, text=True
        )
        return f"process {self.process.pid}" in result.stdout or str(self.process.pid) in result.stdout

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None


class Run:
    def __init__(self, options):
        self.options = options
        self.room = Room(options.build, options.daemon, options.broken)
        self.failures = []

    def post(self, who, names):
        self.programs[who].say(*(f"post {name}" for name in names), "flush")

    def run_command(self, *arguments):
        return subprocess.run(
            [self.room.path / "notify-lifecycle", *arguments], env=self.room.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE / 2, check=False,
        )

    # What can happen to an observer

    def command(self, who, act):
        before = now()
        try:
            result = self.run_command(*COMMAND.get(act, [act]), f"pid:{self.programs[who].pid}")
        except subprocess.TimeoutExpired:
            raise Unanswered(f"a call without an answer: {who}: {act} has not ended after {PATIENCE / 2} s") from None
        self.room.note(
            act=act, who=who, before=before, after=now(), status=result.returncode, said=result.stderr.strip()
        )

    def command_while_cut(self, who, act, after):
        """Changes its state, and cuts its connections when that has begun."""
        thread = threading.Thread(target=self.command, args=(who, act), daemon=True)
        thread.start()
        time.sleep(after)
        before = now()
        self.programs[who].say("cut")
        self.programs[who].sync()
        self.room.note(act="cut", who=who, before=before, after=now(), status=0)
        thread.join()

    def act(self, who, item):
        act, program = item["act"], self.programs[who]
        if act == "stop":
            before = now()
            os.kill(program.pid, signal.SIGSTOP)
            time.sleep(item["for"])
            middle = now()
            os.kill(program.pid, signal.SIGCONT)
            self.room.note(act="stop", who=who, before=before, continued=middle, after=now(), status=0)
        elif act == "add":
            how, name = item["name"].split()
            program.say(f"cancel {name}{'*' if how == 'prefix' else ''}", item["name"])
        elif act in ("more", "fewer"):
            for index in range(0, len(plan.MORE), 50):
                program.say(*(f"{'add' if act == 'more' else 'cancel'} {name}" for name in plan.MORE[index : index + 50]))
        elif act == "cut-changing":
            self.command_while_cut(who, item["change"], item["after"])
        elif act == "report":
            program.say(f"report {item['state']}")
            program.sync()
        elif act in ("fork", "cut"):
            before = now()
            program.say(act)
            program.sync()
            self.room.note(act=act, who=who, before=before, after=now(), status=0)
        elif act != "nothing":
            self.command(who, act)
        if names := item.get("then", []):
            self.burst(item["poster"], names)

    def burst(self, who, names):
        # A quarter at once, and the others over what it may take until everything is as before.
        self.post(who, names[: len(names) // 4])
        for index in range(len(names) // 4, len(names), 6):
            time.sleep(0.01)
            self.post(who, names[index : index + 6])

    # What can happen to those who nap

    def shown(self, who):
        """The state of a program, and who has decided on it, as the agent shows it; None if it doesn't."""
        result = self.run_command("list", "--json")
        shown = [json.loads(line) for line in result.stdout.splitlines()]
        shown = [(one["state"], one["decider"]) for one in shown if one["pid"] == self.programs[who].pid]
        return shown[0] if shown else None

    def await_nap(self, who, before, act, agent):
        """Waits until a program naps, or is awake, unless there is another agent by then, which knows nothing of it."""
        naps, deadline, shown = plan.OBSERVERS[who]["nap"], time.monotonic() + PATIENCE / 2, None
        expected = ("background" if naps == "background" else "suspended") if act == "nap" else "foreground"
        while time.monotonic() < deadline and self.agent.process is agent:
            shown = self.shown(who)
            if shown and shown[0] == expected and (act == "wake" or shown[1] == "nap"):
                # A program that is to be stopped is suspended first.
                if naps != "frozen" or (state_of(self.programs[who].pid) in "Tt") == (act == "nap"):
                    # The nap may have been about to begin: nothing is released, but the answer comes when all is in force.
                    if act == "wake" and self.run_command("release", f"pid:{self.programs[who].pid}").returncode != 0:
                        continue
                    return self.room.note(act=act, who=who, before=before, after=now(), status=0, state=expected)
            time.sleep(0.02)
        status = int(self.agent.process is agent)
        self.room.note(act=act, who=who, before=before, after=now(), status=status, state="unknown", said=str(shown))
        return None

    def move_focus(self, item):
        before, agent, old = now(), self.agent.process, self.focused
        self.focused = (item["to"], agent)
        if item["to"]:
            self.room.focus.move(self.programs[item["to"]].pid, item["to"])
            self.await_nap(item["to"], before, "wake", agent)
        else:
            self.room.focus.move(os.getpid(), "other")
        # An agent naps who has had the focus since it started.
        if old[0] and old[0] != item["to"]:
            self.await_nap(old[0], before, "nap", agent if old[1] is agent else None)

    def nap(self, how):
        """No program naps at the end of a round."""
        before = now()
        result = self.run_command("nap", how)
        if result.returncode != 0:
            self.room.note(
                act=f"nap-{how}", who="world", before=before, after=now(), status=result.returncode, said=result.stderr
            )
        for who in plan.nappers():
            if how == "off":
                self.await_nap(who, before, "wake", self.agent.process)
            else:
                self.room.note(act="nap", who=who, before=before, after=now(), status=0, state="unknown")
        self.focused = (None, None)

    def start_agent(self, item):
        """Programs have their state changed by an agent that may not know all their connections."""
        threads = [
            threading.Thread(target=self.command, args=(who, item["early"]), daemon=True)
            for who, facts in plan.OBSERVERS.items() if facts.get("centers")
        ]
        for thread in threads:
            thread.start()
        self.agent.start()
        for thread in threads:
            thread.join()

    def await_everybody(self):
        """Programs look for a new bus less and less often, in the end every five seconds. One that naps comes when it
        wakes, and one that observes nothing does not come."""
        missing, deadline = set(plan.OBSERVERS) - set(plan.nappers()), time.monotonic() + 8
        while missing and time.monotonic() < deadline:
            shown = {json.loads(line)["pid"] for line in self.run_command("list", "--json").stdout.splitlines()}
            missing = {who for who in missing if self.programs[who].pid not in shown}
            time.sleep(0.1)

    def world(self, item):
        before = now()
        if item["act"] == "kill-agent":
            self.agent.kill()
            time.sleep(item["for"])
            self.start_agent(item)
        elif item["act"] == "replace-agent":
            self.agent.start("--replace")
        elif item["act"] == "stop-agent":
            self.agent.process.send_signal(signal.SIGSTOP)
            time.sleep(3)
            self.agent.process.send_signal(signal.SIGCONT)
        elif item["act"] == "restart-bus":
            # It is full of posts when it ends.
            for who in plan.POSTERS:
                self.post(who, [f"c.h.{number % 10}" for number in range(400)])
            self.bus.kill()
            time.sleep(item["for"])
            self.bus.start()
            if self.agent.process.wait(PATIENCE) is not None:
                self.agent.process = None
                self.start_agent(item)
            self.await_everybody()
        self.room.note(act=item["act"], who="world", before=before, after=now(), status=0, gap=item["for"])

    # The run

    def follow(self, begin, items, do):
        """Does each of them at its time, or as soon as the one before is done."""
        def work():
            try:
                for item in items:
                    time.sleep(max(0, begin + item["at"] - time.monotonic()))
                    do(item)
            except Exception as failure:  # pylint: disable=broad-exception-caught
                self.failures.append(failure)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def round(self, number):
        todo = plan.make(self.options.seed, number, self.only)
        self.room.note(act="round", who="world", before=now(), after=now(), status=0, number=number)
        self.nap("on")
        begin = time.monotonic()
        threads = [self.follow(begin, items, lambda item, who=who: self.act(who, item)) for who, items in todo["acts"].items()]
        threads.append(self.follow(begin, todo["world"], self.world))
        threads.append(self.follow(begin, todo["focus"], self.move_focus))
        threads.append(self.follow(begin, todo["states"], lambda item: self.programs[item["who"]].say(item["what"])))
        threads += [
            self.follow(begin, items, lambda item, who=who: self.post(who, item["names"]))
            for who, items in todo["posts"].items()
        ]
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        self.settle()

    def settle(self):
        """Everything continues, is in the foreground, and has heard what it will hear."""
        self.nap("off")
        for who in plan.touched():
            if who in plan.nappers():
                continue
            self.command(who, "foreground")
            if plan.OBSERVERS[who]["kind"] == "swift":
                self.act(who, {"act": "report", "state": "foreground"})
            self.command(who, "release")
        for who in plan.touched():
            state = state_of(self.programs[who].pid)
            if state in "Tt":
                self.room.note(act="stays-stopped", who=who, before=now(), after=now(), status=1)
                os.kill(self.programs[who].pid, signal.SIGCONT)
        for who in (*plan.POSTERS, plan.SETTER):
            self.programs[who].sync()
        for who in (plan.SETTER, "untouched"):
            self.programs[who].say(*(f"get {name}" for name in plan.STATES))
        # Posts that have not been heard by then are lost.
        files, size = [self.room.path / f"{who}.log" for who in plan.OBSERVERS], -1
        deadline = time.monotonic() + PATIENCE
        while size != (size := sum(file.stat().st_size for file in files)) and time.monotonic() < deadline:
            time.sleep(1.5)
        for program in self.programs.values():
            program.sync()
        memory = int(pathlib.Path(f"/proc/{self.bus.router}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
        self.room.note(act="settled", who="world", before=now(), after=now(), status=0, memory=memory)

    def run(self):
        options = self.options
        self.only = set(options.only.split(",") if options.only else [*plan.ACTS, *plan.WORLD, *plan.OTHERS]) - set(options.without.split(","))
        self.focused = (None, None)
        self.programs, number = {}, options.round - 1
        self.bus = Bus(self.room)
        self.agent = Agent(self.room)
        try:
            for who, facts in plan.OBSERVERS.items():
                self.programs[who] = Program(self.room, who, facts["kind"], facts.get("relay"), facts.get("centers", 1))
                self.programs[who].say(*plan.names_of(who))
            for who, kind in [*plan.POSTERS.items(), (plan.SETTER, "swift")]:
                self.programs[who] = Program(self.room, who, kind)
                self.programs[who].say("post c.first")
            for program in self.programs.values():
                program.sync()
            threading.Thread(target=note_starvation, args=[self.room], daemon=True).start()
            begin = time.monotonic()
            verdict = judge.Judge(self.room.path, plan.OBSERVERS, plan.POSTERS, plan.SETTER)
            while time.monotonic() - begin < options.seconds:
                self.round(number)
                number += 1
                if not verdict.judge(sys.stdout, f"{options.daemon}, SEED={options.seed}, round {number}"):
                    return False
            verdict.summary(sys.stdout)
            return True
        except Unanswered as what:
            print(f"\nVIOLATION: {what}\n{options.daemon}, SEED={options.seed}, round {number + 1}")
            return False
        finally:
            for program in self.programs.values():
                program.process.kill()
                program.process.wait()
            if self.agent.process:
                self.agent.kill()
            self.bus.kill()
            self.room.focus.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--daemon", default="dbus-daemon", choices=["dbus-daemon", "dbus-broker"])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--round", type=int, default=1, help="the first one, as one that went wrong before")
    parser.add_argument("--only", default="", help="these acts alone, separated by commas")
    parser.add_argument("--without", default="", help="all acts but these")
    parser.add_argument("--break", dest="broken", default="", help="which promise is broken; see breaks.py")
    parser.add_argument("--keep", action="store_true", help="keep the records also if nothing is wrong")
    options = parser.parse_args()
    run = Run(options)
    right = False
    try:
        right = run.run()
    finally:
        if right and not options.keep:
            shutil.rmtree(run.room.path)
        else:
            print(f"The records are in {run.room.path}")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
