# SPDX-License-Identifier: Apache-2.0
"""A binding is a program that does what lines tell it, and says what it hears: see Bindings/README.md."""

import collections
import os
import queue
import signal
import subprocess
import threading
import time

from .raw import PATIENCE


class Failure(Exception):
    """A promise is broken."""


class Program:
    """One run of a binding's program."""

    def __init__(self, command, environment, log):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("DBUS_", "NOTIFYBUS_"))}
        clean["XDG_RUNTIME_DIR"] = "/nonexistent"
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env={**clean, **environment}, text=True
        )
        self.answers = queue.Queue()
        self.events, self.changed = [], threading.Condition(threading.RLock())
        self._heard, self._counts = collections.defaultdict(list), collections.Counter()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            words = line.split()
            if words and words[0] in ("done", "failed"):
                self.answers.put(words)
            else:
                with self.changed:
                    if words[:1] == ["heard"]:
                        self._heard[words[1]].append(bytes.fromhex(words[2][1:]).decode())
                        self._counts[words[1], words[2]] += 1
                    else:
                        self.events.append(words)
                    self.changed.notify_all()
        self.answers.put(["failed", "ended"])

    def tell(self, *words):
        """Has a command done, and returns None, or what kind of error it failed with."""
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        try:
            answer = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failure(f"no answer to '{words[0]}' within {PATIENCE} s") from None
        return None if answer[0] == "done" else answer[1]

    def wait_for(self, condition, what):
        """Returns the first true value that the condition has for the events."""
        deadline = time.monotonic() + PATIENCE
        with self.changed:
            while not (value := condition(self.events)):
                if not self.changed.wait(deadline - time.monotonic()):
                    raise Failure(f"{what} did not come within {PATIENCE} s; there were {self.events[-5:]}")
            return value

    def heard(self, observer):
        """The names that an observer has heard so far."""
        with self.changed:
            return list(self._heard[observer])

    def count(self, observer, word):
        """How often it has heard a name."""
        with self.changed:
            return self._counts[observer, word]

    def close(self):
        """Ends it by the end of its input, as a pipe would."""
        try:
            os.kill(self.process.pid, signal.SIGCONT)
            self.process.stdin.close()
            self.process.wait(timeout=PATIENCE)
        except (subprocess.TimeoutExpired, OSError):
            self.process.kill()
            self.process.wait()
            raise Failure("it did not end with its input") from None
        finally:
            self.process.stdout.close()
        if self.process.returncode != 0:
            raise Failure(f"it ended with the status {self.process.returncode}")
