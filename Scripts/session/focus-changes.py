#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Moves the focus between two windows, and checks that org.notifybus.session.focus says so each time, and then no more:

    Scripts/session/focus-changes.py x11|sway|gnome|plasma COUNT TITLE=PROCESS TITLE=PROCESS

Scripts/session/acts runs it in its sessions. It prints how long it took from asking the desktop until notify-wait had
printed the process, and since the desktop had answered. Exits with 1 if a name was missing, or told another process.
"""
import json
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import time

NAME, END = "org.notifybus.session.focus", "com.example.focus.end"
REST = 2.0
desktop, count, windows = sys.argv[1], int(sys.argv[2]), [word.split("=") for word in sys.argv[3:]]


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def session_object(name, path):
    import dbus

    return dbus.SessionBus().get_object(name, path)


def way_of_x11():
    ids = {title: output("xdotool", "search", "--name", f"^{title}$").split()[0] for title, _ in windows}
    return lambda title: output("xdotool", "windowactivate", ids[title])


def way_of_sway():
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(os.environ["SWAYSOCK"])

    def focus(title):
        command = f'[title="^{title}$"] focus'.encode()
        stream.sendall(b"i3-ipc" + struct.pack("=II", len(command), 0) + command)
        length, _ = struct.unpack("=6xII", stream.recv(14, socket.MSG_WAITALL))
        stream.recv(length, socket.MSG_WAITALL)

    return focus


def way_of_gnome():
    shell = session_object("org.gnome.Shell", "/org/gnome/Shell")
    script = "global.get_window_actors().map(a => a.meta_window).find(w => w.title == '%s').activate(0)"
    return lambda title: shell.Eval(script % title, dbus_interface="org.gnome.Shell")


def way_of_plasma():
    runner = session_object("org.kde.KWin", "/WindowsRunner")
    ids = {title: runner.Match(title, dbus_interface="org.kde.krunner1")[0][0] for title, _ in windows}
    return lambda title: runner.Run(ids[title], "", dbus_interface="org.kde.krunner1")


def wakeups(process):
    total = 0
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/status") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
    return total


class Observer:
    def __init__(self):
        ready, writer = os.pipe()
        command = ["notify-wait", f"--ready-fd={writer}", "-f", NAME, END, "--format", "%n %s"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[writer])
        os.close(writer)
        os.read(ready, 64)
        self.rest = b""

    def line(self, patience):
        """The next line, or None if there is none in time."""
        end = time.monotonic() + patience
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                return None
            self.rest += os.read(self.process.stdout.fileno(), 4096)
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()


focus = globals()[f"way_of_{desktop}"]()
observer = Observer()
agent = json.loads(output("notify-lifecycle", "status", "--json"))["pid"]
now = json.loads(output("notify-lifecycle", "focus", "--json"))["pid"]
turn = 0 if str(now) != windows[0][1] else 1
times, since, wrong = [], [], []
for number in range(count):
    title, process = windows[(turn + number) % 2]
    began = time.monotonic()
    focus(title)
    answered = time.monotonic()
    while (line := observer.line(10)) != f"{NAME} {process}":
        wrong.append(f"{line or 'nothing'} instead of {process}, which has the window {title}, in change {number}")
        if line is None:
            break
    else:
        times.append((time.monotonic() - began) * 1000)
        since.append((time.monotonic() - answered) * 1000)
# Everything has settled after this time, and then there is nothing more to tell, nor to look at.
extra = observer.line(REST / 2)
before = wakeups(agent)
time.sleep(REST)
woken = wakeups(agent) - before
output("notify-post", END)
while (line := extra or observer.line(10)) is not None and not line.startswith(END):
    wrong.append(f"{line} while nothing happened")
    extra = None
observer.process.terminate()
for line in wrong[:10]:
    print(line)


def spread(values):
    values.sort()
    return (
        f"{statistics.median(values):.1f} ms (median), {values[len(values) * 99 // 100]:.1f} ms (99 %), "
        f"{values[-1]:.1f} ms (longest)"
    )


if times:
    print(
        f"{len(times)} of {count} changes told, {len(wrong)} wrong; after {spread(times)}, and after {spread(since)} since "
        f"the desktop had answered; {woken} wake-ups of the agent in {REST:.0f} s of rest"
    )
sys.exit(1 if wrong or len(times) != count else 0)
