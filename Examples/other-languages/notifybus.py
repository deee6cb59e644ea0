#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Posts and observes NotifyBus names on the session bus. Needs only the standard library."""
import collections
import getopt
import json
import math
import os
import re
import socket
import struct
import sys
import time
import urllib.parse

USAGE = "usage: notifybus.py post NAME... | wait [-f] [-t SECONDS] NAME... | check FILE"
RESERVED = ("com.apple.system.", "org.notifybus.system.")
CALL, RETURN, SIGNAL = 1, 2, 4
FIELDS = {(1, "o"): "path", (2, "s"): "interface", (3, "s"): "member", (5, "u"): "reply",
          (6, "s"): "destination", (7, "s"): "sender", (8, "g"): "signature"}
TYPES = {"s": "I", "o": "I", "g": "B", "y": "B", "n": "h", "q": "H", "b": "I", "i": "i", "u": "I",
         "h": "I", "x": "q", "t": "Q", "d": "d"}
ANSWER_TIME = 25  # Seconds that the bus has to answer.
OWNER_TIME = 1  # Seconds that the command stays, so that observers can ask who posted.


def check(name):
    """Raises ValueError unless the name can be posted."""
    if re.search("[\0\ud800-\udfff]", name):
        raise ValueError("A name must be UTF-8 without NUL.")
    if not 1 <= len(name.encode()) <= 511:
        raise ValueError(f"A name must have 1 to 511 bytes; this one has {len(name.encode())}.")
    if name.startswith("self."):
        raise ValueError('A name that begins with "self." is never sent.')


def path(name):
    """Returns the object path for a name."""
    return "/org/notifybus/reserved" if name.startswith(RESERVED) else "/org/notifybus"


def interface(name):
    """Returns the interface for a name: escaped, or hashed if that is too long."""
    parts = [re.sub(rb"^[0-9]|[^A-Za-z0-9]", lambda byte: b"_%02x" % ord(byte[0]), part) or b"_"
             for part in name.encode().split(b".")]
    escaped = b".".join([b"org.notifybus.n", *parts]).decode()
    if len(escaped) <= 255:
        return escaped
    fnv = 14695981039346656037
    for byte in name.encode():
        fnv = (fnv ^ byte) * 1099511628211 % 2**64
    return f"org.notifybus.h.x{fnv:016x}"


def match_rules(pattern):
    """Returns the match rules for a name, or for a prefix that ends with `*`."""
    prefix = pattern.removesuffix("*")
    check(prefix or pattern)
    rule = "type='signal',member='Posted',path='%s'"
    if prefix == pattern:
        return [rule % path(pattern) + f",interface='{interface(pattern)}'"]
    # The bus refuses a namespace that can't begin a bus name.
    if len(prefix) <= 256 and re.fullmatch(r"([A-Za-z_-][A-Za-z0-9_-]*\.)+", prefix):
        rule += f",arg0namespace='{prefix[:-1]}'"
    # A short prefix, like that of `com.*`, may begin reserved names and others.
    paths = {path(prefix)} | {path(start) for start in RESERVED if start.startswith(prefix)}
    return [rule % each for each in sorted(paths)]


def marshal(kind, serial, body=None, **fields):
    """Returns a message as bytes. The body is one string or nothing."""
    def text(value):
        return struct.pack("<I", len(value.encode())) + value.encode() + b"\0"

    header = b"" if body is None else b"\x08\1g\0\1s\0"
    for (code, signature), field in FIELDS.items():
        if field in fields:
            header += bytes(-len(header) % 8) + bytes([code, 1, ord(signature), 0])
            header += text(fields[field])
    data = b"" if body is None else text(body)
    flags = 1 if kind == SIGNAL else 0  # 1: Expects no reply.
    start = struct.pack("<cBBBIII", b"l", kind, flags, 1, len(data), serial, len(header))
    return start + header + bytes(-len(header) % 8) + data


def measure(data):
    """Returns the byte order and where the header and the message end, from the first 16 bytes."""
    order = {ord("l"): "<", ord("B"): ">"}.get(data[0])
    if not order or data[3] != 1:
        raise ValueError("The byte order or the version is unknown.")
    body, _, header = struct.unpack_from(order + "III", data, 4)
    end = 16 + header + -header % 8 + body
    if header > 2**26 or end > 2**27:
        raise ValueError("The message is too long.")
    return order, 16 + header, end


def read(data, order, at, signature):
    """Returns the number or the string at an index, and where it ends."""
    size = struct.calcsize(TYPES[signature])
    at += -at % size
    value, = struct.unpack_from(order + TYPES[signature], data, at)
    at += size
    if signature not in ("s", "o", "g"):
        return value, at
    if at + value >= len(data):
        raise ValueError("A string is longer than its message.")
    return data[at:at + value].decode(), at + value + 1


def unmarshal(data):
    """Returns a message as a dictionary, with the body if that begins with a string or a `u`."""
    order, end, _ = measure(data)
    message, at = {"kind": data[1]}, 16
    while at < end:
        code, at = read(data, order, at + -at % 8, "y")
        signature, at = read(data, order, at, "g")
        if signature not in TYPES or end > 2**16:
            return {"kind": 0}  # No message for this program has such fields or so many.
        value, at = read(data, order, at, signature)
        message[FIELDS.get((code, signature))] = value
    signature = message.get("signature", "")[:1]
    if signature in ("s", "u"):
        message["body"], _ = read(data, order, end + -end % 8, signature)
    return message


def addresses():
    """Yields the socket addresses of the session bus."""
    listed = os.environb.get(b"DBUS_SESSION_BUS_ADDRESS")
    if not listed:
        yield os.environb.get(b"XDG_RUNTIME_DIR", b"/run/user/%d" % os.getuid()) + b"/bus"
    unix = rb"(?:^|;)unix:(?:[^;]*,)?(path|abstract)=([^,;]*)"
    for key, value in re.findall(unix, listed or b""):
        yield (b"\0" if key == b"abstract" else b"") + urllib.parse.unquote_to_bytes(value)


class Bus:
    """Is a connection to the session bus."""

    def __init__(self):
        reason = "DBUS_SESSION_BUS_ADDRESS names no usable address."
        for address in addresses():
            self.serial, self.data, self.queue = 0, bytearray(), collections.deque()
            self.rules, self.users = set(), {}
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.settimeout(ANSWER_TIME)
                self.socket.connect(address)
                user = str(os.geteuid()).encode().hex().encode()
                self.socket.sendall(b"\0AUTH EXTERNAL %s\r\n" % user)
                if not self.socket.recv(4096).startswith(b"OK "):
                    raise ConnectionError("It doesn't accept this user.")
                self.socket.sendall(b"BEGIN\r\n")
                self._call("Hello")
                return
            except OSError as error:
                reason = f"Can't use the session bus: {error}"
                self.socket.close()
        raise ConnectionError(reason)

    def close(self):
        """Leaves the bus."""
        self.socket.close()

    def post(self, name):
        """Posts a name. Stay on the bus for `user.uid.` names: observers ask who you are."""
        check(name)
        self._send(SIGNAL, name, path=path(name), interface=interface(name), member="Posted")
        self._call("GetId")  # The bus answers after it has handled the post.

    def wait(self, *patterns, timeout=None):
        """Observes names, and prefixes that end with `*`. Returns an iterator of their posts.

        Posts made after this returns are heard. The iterator raises TimeoutError. Keep reading:
        the bus queues without bound what you don't read.
        """
        for rule in [rule for pattern in patterns for rule in match_rules(pattern)]:
            if rule not in self.rules:
                self._call("AddMatch", rule)
                self.rules.add(rule)
        return self._posts(patterns, math.inf if timeout is None else time.monotonic() + timeout)

    def _posts(self, patterns, deadline):
        """Yields names that match the patterns, until the deadline."""
        prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
        while True:
            message = self.queue.popleft() if self.queue else self._receive(deadline)
            name = str(message.get("body"))
            if (name in patterns or name.startswith(prefixes)) and self._is_genuine(message, name):
                yield name
            if time.monotonic() >= deadline:
                raise TimeoutError

    def _is_genuine(self, message, name):
        """Tells whether a message is a post of a name that its sender may post."""
        try:
            check(name)
        except ValueError:
            return False
        # The rule for a prefix lets any interface through, and anyone can send to any path.
        expected = {"kind": SIGNAL, "path": path(name), "interface": interface(name),
                    "member": "Posted", "signature": "s", "destination": None}
        if any(message.get(key) != value for key, value in expected.items()):
            return False
        if not name.startswith("user.uid."):
            return True
        sender = message.get("sender", "")
        if sender not in self.users:
            if len(self.users) >= 1000:
                self.users.clear()
            self.users[sender] = self._call("GetConnectionUnixUser", sender, may_fail=True)
        owner = name.split(".")[2]
        return self.users[sender] == 0 or str(self.users[sender]) == owner

    def _send(self, kind, body, **fields):
        """Sends a message."""
        self.serial = self.serial % 0xffffffff + 1
        self.socket.settimeout(ANSWER_TIME)
        try:
            self.socket.sendall(marshal(kind, self.serial, body, **fields))
        except TimeoutError:
            raise ConnectionError("The bus doesn't read.") from None

    def _call(self, member, argument=None, may_fail=False):
        """Calls the bus and returns its answer."""
        bus, deadline = "org.freedesktop.DBus", time.monotonic() + ANSWER_TIME
        try:
            self._send(CALL, argument, path="/org/freedesktop/DBus", interface=bus, member=member,
                       destination=bus)
            message = self._receive(deadline)
            while message.get("reply") != self.serial or message.get("sender") != bus:
                self.queue.append(message)
                message = self._receive(deadline)
        except TimeoutError:
            raise ConnectionError("The bus doesn't answer.") from None
        if message["kind"] == RETURN:
            return message.get("body")
        if may_fail:
            return None
        raise ConnectionError(f"The bus refuses {member}: {message.get('body')}")

    def _receive(self, deadline):
        """Returns the next message."""
        try:
            while len(self.data) < 16 or len(self.data) < measure(self.data)[2]:
                left = max(0.001, deadline - time.monotonic())
                self.socket.settimeout(None if left == math.inf else left)
                data = self.socket.recv(65536)
                if not data:
                    raise ConnectionError("The bus has closed the connection.")
                self.data += data
            size = measure(self.data)[2]
            message = unmarshal(self.data[:size])
        except (ValueError, struct.error) as error:
            raise ConnectionError(f"The bus sent a malformed message: {error}") from None
        del self.data[:size]
        return message


def differs(case):
    """Tells whether these functions differ from a conformance case."""
    name, ours = case["name"], {}
    try:
        check(name)
        ours = unmarshal(marshal(SIGNAL, 1, name, path=path(name), interface=interface(name),
                                 member="Posted"))
    except ValueError:
        pass
    return any(ours.get(key) != case.get(key) for key in ("path", "interface", "member", "body"))


def run(command, options, names):
    """Runs a command and returns the exit status."""
    if command == "check":
        with open(names[0], encoding="utf-8") as file:
            cases = json.load(file)
        wrong = [json.dumps(case) for case in cases if differs(case)]
        print("\n".join(wrong) or f"{len(cases)} cases, all right")
        return 1 if wrong else 0
    names = [os.fsencode(name).decode(errors="surrogateescape") for name in names]
    for name in names:
        match_rules(name) if command == "wait" else check(name)
    bus = Bus()
    if command == "post":
        for name in names:
            bus.post(name)
        time.sleep(OWNER_TIME if any(name.startswith("user.uid.") for name in names) else 0)
        return 0
    posts = bus.wait(*names, timeout=float(options["-t"]) if "-t" in options else None)
    print("live", file=sys.stderr, flush=True)
    for name in posts:
        # Someone else may have chosen the name, so keep its control characters from the terminal.
        if os.isatty(1):
            name = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
        os.write(1, name.encode() + b"\n")
        if "-f" not in options:
            return 0


def main():
    """Runs the command line."""
    command = (sys.argv[1:2] or [""])[0]
    try:
        options, names = getopt.getopt(sys.argv[2:], "ft:" if command == "wait" else "")
        if command not in ("post", "wait", "check") or not names:
            raise ValueError(USAGE)
        seconds = dict(options).get("-t", "0")
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]*)?", seconds):
            raise ValueError("SECONDS must be a number below 1000000.")
        return run(command, dict(options), names)
    except KeyboardInterrupt:
        return 130
    except TimeoutError:
        print("notifybus.py: The time is up.", file=sys.stderr)
        return 2
    except (ValueError, OSError, getopt.GetoptError) as error:
        print(f"notifybus.py: {error}", file=sys.stderr)
        return 69 if isinstance(error, OSError) else 64


if __name__ == "__main__":
    sys.exit(main())
