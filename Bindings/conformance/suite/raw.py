# SPDX-License-Identifier: Apache-2.0
"""A connection to a bus that sends what it is told to, and sees what is posted. It knows nothing of names."""

import contextlib
import os
import queue
import socket
import threading

from notifybus import _wire as wire

BUS, BUS_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"
PATIENCE = float(os.environ.get("PATIENCE", "30"))


class Raw:
    """A connection, by default this user's. It reads in a thread of its own."""

    def __init__(self, path, user=None):
        self.socket = socket.socket(socket.AF_UNIX)
        if user is not None:
            os.seteuid(user)  # The bus asks the kernel who has connected.
        try:
            self.socket.connect(path)
            self.socket.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\n")
        finally:
            if user is not None:
                os.seteuid(0)
        said = b""
        while b"OK " not in said:
            data = self.socket.recv(4096)
            if not data:
                raise ConnectionError(f"the bus said {said!r}")
            said += data
        self.socket.sendall(b"BEGIN\r\n")
        self.serial = 0
        self.answers, self.signals = queue.Queue(), queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.name = self.call("Hello")[0]

    def _read(self):
        parser = wire.Parser()
        try:
            while data := self.socket.recv(1 << 18):
                for message in parser.feed(data):
                    if message.kind == wire.SIGNAL:
                        if message.get("member") == "Posted":
                            self.signals.put(message)
                    else:
                        self.answers.put(message)
        except OSError:
            pass
        self.answers.put(None)

    def send(self, kind, flags, arguments, **fields):
        self.serial += 1
        fields = {field: value for field, value in fields.items() if value is not None}
        self.socket.sendall(wire.marshal(kind, self.serial, flags, fields, arguments))
        return self.serial

    def call(self, member, *arguments, signature=None, to=BUS, path=BUS_PATH, interface=None):
        """Calls a method; the arguments of the answer, or an error."""
        signature = "s" * len(arguments) if signature is None else signature
        serial = self.send(
            wire.CALL, 0, arguments, destination=to, path=path, interface=interface or to, member=member,
            signature=signature or None,
        )  # fmt: skip
        while True:
            answer = self.answers.get(timeout=PATIENCE)
            if answer is None:
                raise ConnectionError("the bus has gone")
            if answer.get("reply") == serial:
                if answer.kind == wire.ERROR:
                    raise RuntimeError(f"{member}: {answer.body()}")
                return answer.body()

    def signal(self, arguments, **fields):
        """Sends a signal, and returns when the bus has routed it."""
        self.send(wire.SIGNAL, 1, arguments, **fields)
        self.call("GetId")

    @contextlib.contextmanager
    def watching(self):
        """Meanwhile `signals` gets every post that the bus routes to everybody."""
        rule = "type='signal',member='Posted'"
        self.signals = queue.Queue()
        self.call("AddMatch", rule)
        yield
        self.call("RemoveMatch", rule)

    def signals_of(self, count, arguments, **fields):
        """Sends so many equal signals, and returns when the bus has routed them."""
        data = bytearray(wire.marshal(wire.SIGNAL, 0, 1, fields, arguments))
        while count:
            chunk = bytearray()
            for _ in range(min(count, 500)):
                self.serial += 1
                data[8:12] = self.serial.to_bytes(4, "little")
                chunk += data
            count -= min(count, 500)
            self.socket.sendall(chunk)
        self.call("GetId")

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # The thread that reads keeps it open.
        self.socket.close()
