#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what one user's flood of calls does to another user's, and to the agent's memory.

    fairness.py BUS-SOCKET AGENT-PID OBSERVER-PID [CHECK-PROGRAM]

A user who owns nothing, 'nobody', floods the lifecycle agent; another, 'daemon', whose observer is running already, moves it
to the background and back meanwhile, posts names that a connection of his hears behind the relay, and has observers leave
the bus. Prints a line for each kind of flood: how long the other user's calls took at the median and at worst, how long a
post took at worst until it was heard, how many posts were lost, how many of those who left stay registered, the agent's
memory, and whether that is what Documentation/security.md promises of times. The last lines are about a bare service in
place of the agent: so long the bus itself takes.

See Scripts/check/fairness, which starts all that and needs root. Ends with 1 if a call was not answered, a post was
lost, an observer that left stays registered, the agent ended, or its memory did not stay within bounds. Times depend on
the machine and on what else it does; they are compared with the promise, and decide nothing.
"""

import os
import pickle
import pwd
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

COUNT = 60_000
AGENT = ("org.notifybus.Agent1", "/org/notifybus/Agent1")
RELAY = ("org.notifybus.Relay1", "/org/notifybus/Relay1")
BARE = ("org.example.Bare", "/org/example/Bare")
# How long any one call may take before it counts as unanswered, in seconds.
PATIENCE = 60
# What the agent may use under any flood, and how much more than before once it is over, in MB.
MEMORY = 64
RETURN = 16
# How long another user's call may take: the median and the longest, in ms.
LIMITS = (100, 1000)
# How many observers leave during a flood.
LEAVING = 20

BUS, AGENT_PID, OBSERVER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
CHECKS = sys.argv[4] if len(sys.argv) > 4 else None
# The buses of two applications in sandboxes, if there are any: one floods, and one hears.
SANDBOXES = os.environ.get("SANDBOXES", "").split()


def string(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def aligned(data, size):
    return data + b"\0" * (-len(data) % size)


def call(destination, path, interface, member, signature="", body=b"", reply=True):
    """A method call without its serial number, as the bytes before and after that."""
    fields = b""
    for code, kind, value in ((1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", destination)):
        fields = aligned(fields, 8) + bytes((code, 1, ord(kind), 0)) + string(value)
    if signature:
        fields = aligned(fields, 8) + bytes((8, 1, ord("g"), 0, len(signature))) + signature.encode() + b"\0"
    head = struct.pack("<cBBBI", b"l", 1, 0 if reply else 1, 1, len(body))
    return head, struct.pack("<I", len(fields)) + aligned(fields, 8) + body


def post(name):
    """A post of a name that consists of letters, digits and dots, and no part of which begins with a digit."""
    fields = b""
    for code, kind, value in ((1, "o", "/org/notifybus"), (2, "s", "org.notifybus.n." + name), (3, "s", "Posted")):
        fields = aligned(fields, 8) + bytes((code, 1, ord(kind), 0)) + string(value)
    fields = aligned(fields, 8) + bytes((8, 1, ord("g"), 0, 1)) + b"s\0"
    body = string(name)
    return struct.pack("<cBBBI", b"l", 4, 1, 1, len(body)), struct.pack("<I", len(fields)) + aligned(fields, 8) + body


def answer(sender, serial):
    """The reply to what an observer is told: that it has dropped nothing."""
    fields = aligned(bytes((6, 1, ord("s"), 0)) + string(sender), 8)
    fields += bytes((5, 1, ord("u"), 0)) + struct.pack("<I", serial)
    fields = aligned(fields, 8) + bytes((8, 1, ord("g"), 0, 1)) + b"t\0"
    body = struct.pack("<Q", 0)
    return struct.pack("<cBBBI", b"l", 2, 1, 1, len(body)), struct.pack("<I", len(fields)) + aligned(fields, 8) + body


def texts_of(array):
    """The strings of an 'as', and how many bytes it takes."""
    (length,) = struct.unpack_from("<I", array)
    texts, offset = [], 4
    while offset < 4 + length:
        offset = (offset + 3) & ~3
        (size,) = struct.unpack_from("<I", array, offset)
        texts.append(array[offset + 4 : offset + 4 + size].decode())
        offset += size + 5
    return texts, 4 + length


def names(*texts):
    pieces, size = [], 0
    for text in texts:
        piece = b"\0" * (-size % 4) + string(text)
        size += len(piece)
        pieces.append(piece)
    return struct.pack("<I", size) + b"".join(pieces)


def register(observed, state=None, prefixes=()):
    """The argument of Register."""
    entries = b""

    def entry(key, signature, value):
        nonlocal entries
        entries = aligned(entries, 8) + string(key) + bytes((len(signature),)) + signature.encode() + b"\0"
        entries = aligned(entries, 4) + value

    entry("names", "as", names(*observed))
    entry("prefixes", "as", names(*prefixes))
    if state:
        entry("state", "s", string(state))
    entry("program", "s", string("flood"))
    return aligned(struct.pack("<I", len(entries)), 8) + entries


class Client:
    """A connection to the bus."""

    def __init__(self, bus=None, user=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(bus or BUS)
        self.socket.settimeout(PATIENCE)
        self.serial = 0
        self.buffer = b""
        # The member of the last message.
        self.member = ""
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid() if user is None else user).encode().hex().encode() + b"\r\n")
        while b"\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer = b""
        self.socket.sendall(b"BEGIN\r\n")
        bus = "org.freedesktop.DBus"
        kind, body = self.ask(call(bus, "/org/freedesktop/DBus", bus, "Hello"))
        if kind != 2:
            raise OSError(body)
        self.name = body[4:].rstrip(b"\0").decode()

    def send(self, message):
        self.serial += 1
        self.socket.sendall(message[0] + struct.pack("<I", self.serial) + message[1])
        return self.serial

    def flood(self, message, count):
        """Sends the same call many times."""
        pieces = []
        room = max(1, (1 << 20) // len(message[1]))
        for _ in range(count):
            self.serial += 1
            pieces.append(message[0] + struct.pack("<I", self.serial) + message[1])
            if len(pieces) == room:
                self.socket.sendall(b"".join(pieces))
                pieces = []
        self.socket.sendall(b"".join(pieces))

    def receive(self):
        """The next message: its kind, the serial number that it replies to, its sender, its own number, its body."""
        while True:
            if len(self.buffer) >= 16:
                kind, length = self.buffer[1], struct.unpack_from("<I", self.buffer, 4)[0]
                serial, fields = struct.unpack_from("<II", self.buffer, 8)
                start = (16 + fields + 7) & ~7
                if len(self.buffer) >= start + length:
                    head, body = self.buffer[16 : 16 + fields], self.buffer[start : start + length]
                    self.buffer = self.buffer[start + length :]
                    answers, sender, self.member = 0, "", ""
                    offset = 0
                    while offset < len(head):
                        offset = (offset + 7) & ~7
                        code, kinds = head[offset], head[offset + 2]
                        offset += 4
                        if kinds == ord("u"):
                            if code == 5:
                                answers = struct.unpack_from("<I", head, offset)[0]
                            offset += 4
                        elif kinds == ord("g"):
                            offset += head[offset] + 2
                        else:
                            size = struct.unpack_from("<I", head, offset)[0]
                            if code == 7:
                                sender = head[offset + 4 : offset + 4 + size].decode()
                            elif code == 3:
                                self.member = head[offset + 4 : offset + 4 + size].decode()
                            offset += size + 5
                    return kind, answers, sender, serial, body
            more = self.socket.recv(1 << 16)
            if not more:
                raise OSError("the bus hung up")
            self.buffer += more

    def hasMore(self):
        """Whether a whole message has been read and not returned."""
        if len(self.buffer) < 16:
            return False
        length, fields = struct.unpack_from("<I", self.buffer, 4)[0], struct.unpack_from("<I", self.buffer, 12)[0]
        return len(self.buffer) >= ((16 + fields + 7) & ~7) + length

    def ask(self, message):
        serial = self.send(message)
        while True:
            kind, answers, sender, number, body = self.receive()
            if answers == serial and kind in (2, 3):
                return kind, body


def agent(member, signature="", body=b"", to=AGENT, reply=True):
    return call(to[0], to[1], to[0], member, signature, body, reply)


def set_state(target, state, reply=True):
    body = aligned(aligned(string(target), 4) + string(state), 4) + struct.pack("<I", 0)
    return agent("SetState", "ssb", body, reply=reply)


# MARK: - Floods


def simple(message, prepare=None, to=AGENT):
    """One connection that sends a call COUNT times, and reads nothing meanwhile."""

    def run(begin):
        client = Client()
        if prepare:
            prepare(client)
        begin()
        client.flood(message, COUNT)
        # By then the agent has handled or refused everything that it was sent before.
        for _ in range(3):
            client.ask(call(*to, "org.freedesktop.DBus.Peer", "Ping"))

    return run


def reading(message, prepare=None, to=AGENT):
    """The same by a connection that reads the answers."""

    def run(begin):
        client = Client()
        if prepare:
            prepare(client)
        begin()
        pid = os.fork()
        if pid == 0:
            client.flood(message, COUNT)
            client.send(call(*to, "org.freedesktop.DBus.Peer", "Ping"))
            os._exit(0)
        # Up to the answer to the last call, and without looking at what comes, which would take the processor from the agent.
        last = b"\x05\x01u\0" + struct.pack("<I", client.serial + COUNT + 1)
        tail = b""
        while last not in tail:
            more = client.socket.recv(1 << 20)
            if not more:
                raise OSError("the bus hung up")
            tail = tail[-len(last) :] + more
        os.waitpid(pid, 0)

    return run


def registered(client):
    client.ask(agent("Register", "a{sv}", register([f"com.example.flood.{number}" for number in range(10_000)])))


def relayed(client):
    client.ask(agent("OpenRelay"))
    client.ask(agent("Register", "a{sv}", register(["com.example.flood"]), to=RELAY))


def silent(begin):
    """Observers that answer nothing, and are told to change their states."""
    clients = []
    try:
        for number in range(250):
            clients.append(Client())
            clients[-1].ask(agent("Register", "a{sv}", register([f"com.example.flood.{number}"])))
    except OSError:
        pass  # A bus lets one user have a limited number of connections.
    begin()
    for _ in range(4):
        for client in clients[1:]:
            clients[0].send(set_state(client.name, "background"))
    time.sleep(6)


def unread(begin):
    """Connections that ask for a long list, and do not read it."""
    clients = []
    try:
        for number in range(100):
            clients.append(Client())
            observed = [f"com.example.flood.{number}.{index}." + "x" * 400 for index in range(10)]
            clients[-1].ask(agent("Register", "a{sv}", register(observed)))
    except OSError:
        pass
    begin()
    for index in range(600):
        clients[index % len(clients)].send(agent("List"))
    time.sleep(6)


def checks(begin):
    """An honest program that registers 10,000 names, one after the other."""
    begin()
    subprocess.run([CHECKS], check=True, env={"NOTIFYBUS_ADDRESS": "unix:path=" + BUS})


def large(message, count, to=AGENT):
    """One connection that sends large calls at once, wants no answers and goes on reading nothing."""

    def run(begin):
        client = Client()
        begin()
        client.flood(message, count)
        client.ask(call(*to, "org.freedesktop.DBus.Peer", "Ping"))
        time.sleep(2)

    return run


def sustained(message, rate, seconds):
    """One connection that sends a call over and over, so many bytes a second, wants no answers and reads nothing."""

    def run(begin):
        client = Client()
        begin()
        start, sent = time.monotonic(), 0
        while time.monotonic() < start + seconds:
            client.send(message)
            sent += len(message[0]) + len(message[1])
            time.sleep(max(0, start + sent / rate - time.monotonic()))

    return run


def coming_and_going(count, rounds, bus=None):
    """A program that may talk to the relay alone, and observes many names and none in turns."""

    def run(begin):
        client = Client(bus)
        come = agent("Register", "a{sv}", register(many("c", count)), to=RELAY, reply=False)
        go = agent("Register", "a{sv}", register([]), to=RELAY, reply=False)
        begin()
        for _ in range(rounds):
            client.send(come)
            client.send(go)
        client.ask(call(*RELAY, "org.freedesktop.DBus.Peer", "Ping"))
        time.sleep(2)

    return run


def crowd(begin):
    """240 connections behind the relay, of a few programs, all of which hear each of 60,000 names by three prefixes."""
    stem = "com.example.flood.crowd."
    readers = []
    for _ in range(4):
        reader, writer = os.pipe()
        readers.append(reader)
        if os.fork() == 0:
            try:
                hear_all(60, (stem[:-7], stem[:-1], stem), lambda: os.write(writer, b"."))
            finally:
                os._exit(0)
    for reader in readers:
        os.read(reader, 1)
    poster = Client()
    begin()
    for number in range(COUNT):
        poster.send(post(f"{stem}n{number:05}"))
    for _ in readers:
        os.wait()


def hear_all(count, prefixes, ready):
    """Connections that observe prefixes behind the relay and answer it, until they hear nothing for some seconds."""
    clients = {}
    for _ in range(count):
        client = Client()
        kind, body = client.ask(agent("Register", "a{sv}", register([], prefixes=prefixes), to=RELAY))
        if kind != 2:
            print(f"  not heard behind the relay: {body}", file=sys.stderr)
        clients[client.socket.fileno()] = client
    ready()
    poll = select.poll()
    for number in clients:
        poll.register(number, select.POLLIN)
    end = time.monotonic() + PATIENCE
    while (found := poll.poll(3000)) and time.monotonic() < end:
        for number, _ in found:
            while True:
                kind, _, sender, serial, _ = clients[number].receive()
                if kind == 1:
                    clients[number].send(answer(sender, serial))
                if not clients[number].hasMore():
                    break


def many(kind, count=COUNT):
    return [f"com.example.flood.{kind}.n{number:05}" for number in range(count)]


ADDITION = ("asas", aligned(names("com.example.flood"), 4) + names())
REGISTER = ("Register", "a{sv}")
LONG = ("Release", "ay", struct.pack("<I", 30 << 20) + b"x" * (30 << 20))
FLOODS = [
    ("nothing", lambda begin: (begin(), time.sleep(2))),
    ("60,000 AddNames", simple(agent("AddNames", *ADDITION, reply=False), registered)),
    ("60,000 AddNames, answered", reading(agent("AddNames", *ADDITION), registered)),
    ("60,000 SetState", simple(set_state("pid:1", "background", reply=False))),
    ("60,000 SetState, answered", reading(set_state("pid:1", "background"))),
    ("60,000 List", simple(agent("List", reply=False))),
    ("60,000 List, answered", reading(agent("List"))),
    ("60,000 GetNameState", simple(agent("GetNameState", "s", string("com.example.flood"), reply=False))),
    ("60,000 GetNameState, answered", reading(agent("GetNameState", "s", string("com.example.flood")))),
    ("250 observers that answer nothing", silent),
    ("600 List that nobody reads", unread),
    ("60,000 AddNames to the relay", simple(agent("AddNames", *ADDITION, to=RELAY, reply=False), relayed)),
    ("60,000 Synchronize to the relay", simple(agent("Synchronize", to=RELAY, reply=False), relayed)),
    (
        "60,000 GetNameState to the relay",
        simple(agent("GetNameState", "s", string("com.example.flood"), to=RELAY, reply=False), relayed),
    ),
    ("10,000 notify_register_check", checks),
    ("40 registrations of 60,000 names", large(agent(*REGISTER, register(many("r")), reply=False), 40)),
    ("14 calls of 30 MB", large(agent(*LONG, reply=False), 14)),
    ("6 MB/s of registrations for 25 s", sustained(agent(*REGISTER, register(many("r")), reply=False), 6_000_000, 25)),
    ("60,000 names and none at the relay", coming_and_going(COUNT, 10)),
    ("4,096 names and none at the relay", coming_and_going(4_096, 100)),
    ("240 relay clients and 60,000 posts", crowd),
]
# By an application in a sandbox; the other one's posts are heard in another sandbox of the same user.
SANDBOX_FLOODS = [
    ("60,000 names and none in a sandbox", coming_and_going(COUNT, 10, *SANDBOXES[:1])),
    ("4,096 names and none in a sandbox", coming_and_going(4_096, 100, *SANDBOXES[:1])),
]
# Floods of a service that does nothing but answer.
BARE_FLOODS = [
    ("60,000 calls of a bare service", simple(agent("Flood", to=BARE, reply=False), to=BARE)),
    ("60,000 calls of a bare service, answered", reading(agent("Flood", to=BARE), to=BARE)),
    ("14 calls of 30 MB of a bare service", large(agent(*LONG, to=BARE, reply=False), 14, to=BARE)),
]


# MARK: - Measuring


def memory(key):
    """VmRSS or VmHWM of the agent, in MB."""
    with open(f"/proc/{AGENT_PID}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    raise OSError("the agent has ended")


def become(user):
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)


def start(user, run):
    """Runs something in a process of its own, which reports that it begins, and is killed with this one."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            become(user)
            run(lambda: os.write(writer, b"."))
            status = 0
        except OSError as error:
            print(f"  the flood ended: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    os.close(writer)
    return pid, reader


def is_over(pid):
    return not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().split()[2] == "Z"


def hear(name):
    return f"com.example.heard.n{name}"


class Listener:
    """The connection that hears the other user's posts behind the relay; it runs in a process of its own."""

    COUNT = 400

    def __init__(self, sandbox=None):
        self.sandbox = sandbox
        self.commands, self.results = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.commands[1])
            try:
                self.listen()
            except OSError as error:
                os.write(self.results[1], f"0 0 {error}".encode())
            os._exit(0)
        os.close(self.commands[0])
        if (said := os.read(self.results[0], 4096)) != b".":
            raise OSError(said.decode())
        self.poster = Client()
        self.times = []

    def post(self):
        if len(self.times) < Listener.COUNT:
            self.times.append(time.monotonic())
            self.poster.send(post(hear(len(self.times) - 1)))

    def results_of_all(self):
        """Waits for the posts: how many have been lost, the longest time until one was heard, and what else was wrong."""
        os.write(self.commands[1], struct.pack(f"<I{len(self.times)}d", len(self.times), *self.times))
        lost, worst, fault = os.read(self.results[0], 4096).decode().split(" ", 2)
        os.waitpid(self.pid, 0)
        return int(lost), float(worst), fault

    def listen(self):
        client = Client(self.sandbox, pwd.getpwnam("nobody").pw_uid) if self.sandbox else Client()
        client.ask(agent("OpenRelay"))
        wanted = [hear(number) for number in range(Listener.COUNT)]
        kind, body = client.ask(agent("Register", "a{sv}", register(wanted), to=RELAY))
        if kind != 2:
            raise OSError(f"not heard behind the relay: {body}")
        os.write(self.results[1], b".")
        heard, times, end = {}, None, None
        while times is None or len(heard) < len(times) and time.monotonic() < end:
            ready = select.select([client.socket, self.commands[0]] if times is None else [client.socket], [], [], 0.2)[0]
            if self.commands[0] in ready:
                told = os.read(self.commands[0], 1 << 16)
                if not told:
                    return
                times = struct.unpack(f"<I{len(told) // 8}d", told)[1:]
                end = time.monotonic() + PATIENCE / 2
            if client.socket not in ready:
                continue
            while True:
                kind, _, sender, serial, body = client.receive()
                if kind == 1:
                    if client.member == "DeliverPosts":
                        for name in texts_of(body)[0]:
                            heard.setdefault(name, time.monotonic())
                    client.send(answer(sender, serial))
                if not client.hasMore():
                    break
        delays = [heard[hear(number)] - began for number, began in enumerate(times) if hear(number) in heard]
        os.write(self.results[1], f"{len(times) - len(delays)} {max(delays, default=0) * 1000} ".encode())


class Measured:
    """What has been found out about the other user."""

    def __init__(self, times=(), heard=None, lost=(0, 0), stayed=(0, 0), faults=()):
        self.times = times
        self.heard = heard
        self.lost, self.stayed = lost, stayed
        self.faults = [fault for fault in faults if fault]

    @property
    def holds(self):
        return self.median <= LIMITS[0] and self.worst <= LIMITS[1]

    @property
    def median(self):
        return statistics.median(self.times) * 1000

    @property
    def worst(self):
        return max(self.times) * 1000


def measure(pid, ready, sandbox=None):
    """The other user: changes the state of an observer until the flood is over, and 60 times at least."""
    times, faults = [], []
    state = "background"
    client = Client()
    posted = 0.0
    if sandbox:
        client.ask(agent("OpenRelay"))
    listener = Listener(sandbox)
    leavers = [Client() for _ in range(LEAVING)]
    for number, leaver in enumerate(leavers):
        leaver.ask(agent("Register", "a{sv}", register([f"com.example.leaver.n{number}"])))
    ready()
    while True:
        began = time.monotonic()
        kind, body = client.ask(set_state("pid:" + OBSERVER, state))
        times.append(time.monotonic() - began)
        if kind != 2:
            faults.append("refused: " + body[4:].rstrip(b"\0").decode())
        state = "foreground" if state == "background" else "background"
        if time.monotonic() > posted + 0.05:
            listener.post()
            posted = time.monotonic()
        if leavers and len(times) % 3 == 0:
            leavers.pop().socket.close()
        if is_over(pid()) and len(times) >= 3 * LEAVING + 3 or len(faults) > 2:
            break
        time.sleep(0.005)
    lost, heard, fault = listener.results_of_all()
    end = time.monotonic() + 15
    while stayed := client.ask(agent("List"))[1].count(b"com.example.leaver."):
        if time.monotonic() > end:
            break
        time.sleep(0.2)
    return Measured(times, heard, (lost, len(listener.times)), (stayed, LEAVING), faults + [fault])


def measure_bare(pid, ready):
    """The other user asks the bare service until the flood is over, and 60 times at least."""
    client = Client()
    times = []
    ready()
    while not is_over(pid()) or len(times) < 3 * LEAVING:
        began = time.monotonic()
        client.ask(agent("Ask", to=BARE))
        times.append(time.monotonic() - began)
        time.sleep(0.005)
    return Measured(times)


def serve_barely(begin):
    """A service that reads what it is sent as fast as it can, answers what wants an answer, and does nothing else."""
    client = Client()
    bus = "org.freedesktop.DBus"
    name = aligned(string(BARE[0]), 4) + struct.pack("<I", 4)
    client.ask(call(bus, "/org/freedesktop/DBus", bus, "RequestName", "su", name))
    client.socket.settimeout(None)
    begin()
    buffer, skipped = client.buffer, 0
    while more := client.socket.recv(1 << 20):
        # Long messages are not kept.
        if skipped >= len(more):
            skipped -= len(more)
            continue
        buffer += more[skipped:]
        skipped = offset = 0
        while len(buffer) - offset >= 16:
            kind, flags = buffer[offset + 1], buffer[offset + 2]
            length, serial, fields = struct.unpack_from("<III", buffer, offset + 4)
            start = offset + ((16 + fields + 7) & ~7)
            if len(buffer) < start:
                break
            if kind == 1 and not flags & 1:
                at = buffer.index(b"\x07\x01s\0", offset) + 4
                (size,) = struct.unpack_from("<I", buffer, at)
                client.send(answer(buffer[at + 4 : at + 4 + size].decode(), serial))
            offset = start + length
        skipped = max(0, offset - len(buffer))
        buffer = buffer[offset:]


def run_flood(run, measuring):
    """Has one user flood while the other measures; what that has found."""
    reader, writer = os.pipe()
    # The other user is ready before the flood begins; its number arrives by this.
    number, told = os.pipe()
    other = os.fork()
    if other == 0:
        become("daemon")
        known = []

        def flood_number():
            if not known:
                known.append(struct.unpack("<i", os.read(number, 4))[0])
            return known[0]

        try:
            found = measuring(flood_number, lambda: os.write(writer, b"!"))
        except OSError as error:
            found = Measured(faults=[f"unanswered: {error}"])
        with os.fdopen(writer, "wb") as file:
            pickle.dump(found, file)
        os._exit(0)
    os.close(writer)
    flood = None
    if (ready := os.read(reader, 1)) == b"!":
        flood, began = start("nobody", run)
        os.read(began, 1)
        os.write(told, struct.pack("<i", flood))
        os.close(began)
        ready = b""
    with os.fdopen(reader, "rb") as file:
        found = pickle.loads(ready + file.read())
    os.waitpid(other, 0)
    if flood:
        os.kill(flood, signal.SIGKILL)
        os.waitpid(flood, 0)
    for descriptor in (number, told):
        os.close(descriptor)
    return found


def line(title, found, *rest):
    """Prints what has been found; whether it is as it must be."""
    if found.times:
        promise = "holds" if found.holds else "does not hold"
        heard = "" if found.heard is None else f"{found.heard:.0f} ms"
        counts = ["" if not of else f"{count}/{of}" for count, of in (found.lost, found.stayed)]
        print(
            f"{title:40} {found.median:6.1f} ms {found.worst:6.0f} ms {len(found.times):6} {heard:>9} {counts[0]:>7} "
            f"{counts[1]:>6} {rest[0] if rest else '':>17}  {promise}",
            flush=True,
        )
    else:
        print(f"{title:40}", flush=True)
    if found.lost[0]:
        found.faults.append("posts were lost")
    if found.stayed[0]:
        found.faults.append("somebody who left stays registered")
    for fault in found.faults:
        print(f"{'':40} WRONG: {fault}", flush=True)
    return not found.faults


def main():
    isRight = True
    print(
        f"{'flood by another user':40} {'median':>9} {'worst':>9} {'calls':>6} {'heard':>9} {'lost':>7} {'stay':>6} "
        f"{'peak, after':>17}  {LIMITS[0]} ms, at worst {LIMITS[1]}"
    )
    before = memory("VmRSS")
    only = os.environ.get("FLOODS", "")
    floods = [(title, run, measure) for title, run in FLOODS]
    floods += [
        (title, run, lambda pid, ready: measure(pid, ready, SANDBOXES[1])) for title, run in SANDBOX_FLOODS if SANDBOXES
    ]
    for title, run, measuring in floods:
        if only not in title or run is checks and not CHECKS:
            continue
        with open(f"/proc/{AGENT_PID}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        found = run_flood(run, measuring)
        peak = memory("VmHWM")
        # Large calls that wait, 16 MB of an owner, are handled at 1 MB a second.
        end = time.monotonic() + 30
        while memory("VmRSS") > before + RETURN and time.monotonic() < end:
            time.sleep(0.1)
        after = memory("VmRSS")
        if peak > MEMORY or after > before + RETURN:
            found.faults.append(f"more than {MEMORY} MB, or {RETURN} MB more than the {before:.1f} MB before")
        isRight = line(title, found, f"{peak:.1f}, {after:.1f} MB") and isRight
    for title, run in BARE_FLOODS:
        if only not in title:
            continue
        service, began = start("root", serve_barely)
        os.read(began, 1)
        os.close(began)
        isRight = line(title, run_flood(run, measure_bare)) and isRight
        os.kill(service, signal.SIGKILL)
        os.waitpid(service, 0)
    return 0 if isRight else 1


sys.exit(main())
