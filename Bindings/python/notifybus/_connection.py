# SPDX-License-Identifier: Apache-2.0
"""A connection to a bus: finding it, getting in, calls and their answers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import socket
import stat
import urllib.parse
from typing import Any, Callable, Optional

from ._errors import NoBus, NotifyBusError, Refused
from ._fork import share
from ._names import interface, path
from ._wire import CALL, ERROR, NO_AUTO_START, NO_REPLY, RETURN, SIGNAL, Message, Parser, marshal

BUS = "org.freedesktop.DBus"
BUS_PATH = "/org/freedesktop/DBus"
# Seconds that the bus has to accept a connection, and to answer a call.
ACCEPT_TIME, ANSWER_TIME = 10.0, 25.0
# What answers a call: the message, or why there is none.
Answer = Callable[[Optional[Message], Optional[NotifyBusError]], None]


def _environment(name: str) -> str:
    # As for every program that runs with the rights of another user.
    trusted = os.getuid() == os.geteuid() and os.getgid() == os.getegid()
    return os.environ.get(name, "") if trusted else ""


def resolve(bus: str | None) -> str:
    """The D-Bus address of `session`, `system` or an address; `None` is what `NOTIFYBUS_ADDRESS` says, or `session`."""
    bus = bus or _environment("NOTIFYBUS_ADDRESS") or "session"
    if bus == "system":
        return _environment("DBUS_SYSTEM_BUS_ADDRESS") or "unix:path=/run/dbus/system_bus_socket"
    if bus != "session":
        return bus
    if address := _environment("DBUS_SESSION_BUS_ADDRESS"):
        return address
    folder = _environment("XDG_RUNTIME_DIR")
    if folder and os.path.exists(f"{folder}/bus"):
        return "unix:path=" + urllib.parse.quote(f"{folder}/bus")
    own = f"/run/user/{os.geteuid()}/bus"
    try:
        found = os.stat(own)
        if stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid():
            return f"unix:path={own}"
    except OSError:
        pass
    raise NoBus(
        "There is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and there is neither $XDG_RUNTIME_DIR/bus "
        f"nor {own}."
    )


def sockets(address: str) -> list[bytes]:
    """The sockets that an address names, in the order in which to try them."""
    found = []
    for each in address.split(";"):
        if match := re.fullmatch(r"unix:(?:[^;]*,)?(path|abstract)=([^,;]+)(?:,[^;]*)?", each):
            path = urllib.parse.unquote_to_bytes(match[2])
            found.append(b"\0" + path if match[1] == "abstract" else path)
    if not found:
        raise NoBus(f"'{address}' names no Unix socket; only unix:path= and unix:abstract= can be used.")
    return found


@functools.lru_cache(maxsize=1024)
def _signal(name: str) -> tuple[bytes, bytes]:
    """What stands before and after the serial number of a post."""
    fields = {"path": path(name), "interface": interface(name), "member": "Posted", "signature": "s"}
    data = marshal(SIGNAL, 0, NO_REPLY, fields, (name,))
    return data[:8], data[12:]


class Connection(asyncio.Protocol):
    """A connection. All callbacks run in the order in which messages arrive, before the next one is looked at."""

    def __init__(self, on_message: Callable[[Message], None], on_lost: Callable[[NotifyBusError], None]) -> None:
        self.name = ""  # The unique name.
        self.bus_id = ""  # What tells one bus from another, and from its successor.
        self.is_writable = True
        self.on_writable: Callable[[], None] = lambda: None
        self._on_message, self._on_lost = on_message, on_lost
        self._loop = asyncio.get_running_loop()
        self._accepted: asyncio.Future[None] = self._loop.create_future()
        self._transport: Any = None
        self._socket: socket.socket | None = None
        self._line: bytearray | None = bytearray()
        self._parser = Parser()
        self._serial = 0
        self._calls: dict[int, tuple[str, Answer, asyncio.TimerHandle]] = {}
        share(self)

    @classmethod
    async def open(cls, bus: str | None, *handlers: Any) -> Connection:
        """Connects to a bus, which has accepted the connection when this returns."""
        reason: Exception = NoBus("There is no address.")
        for path in sockets(resolve(bus)):
            link = cls(*handlers)
            try:
                await link._connect(path)
                await asyncio.wait_for(link._accepted, ACCEPT_TIME)
                return link
            except asyncio.TimeoutError:
                reason = NoBus(f"The bus did not accept the connection within {ACCEPT_TIME:g} s.")
            except OSError as error:
                reason = error if isinstance(error, NoBus) else NoBus(f"The bus can't be reached: {error}")
            finally:
                if not link.name:
                    link.close()
        raise reason

    async def _connect(self, path: bytes) -> None:
        # The transport closes it in the end.
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.setblocking(False)
            await self._loop.sock_connect(self._socket, path)
        except BaseException:
            self._socket.close()
            raise
        await self._loop.create_unix_connection(lambda: self, sock=self._socket)

    # The bus knows the user from the socket. To name one would be wrong in a user namespace, as in a container without
    # root, which has numbers of its own.
    def connection_made(self, transport: Any) -> None:
        """Begins to authenticate."""
        self._transport = transport
        transport.write(b"\0AUTH EXTERNAL\r\nDATA\r\n")

    def data_received(self, data: bytes) -> None:
        """Takes what the bus has sent."""
        if self._line is not None:
            self._line += data
            while self._line is not None and b"\r\n" in self._line:
                line, _, rest = bytes(self._line).partition(b"\r\n")
                self._line = bytearray(rest)
                self._authenticate(line)
            if self._line is not None:
                if len(self._line) > 16384:
                    self.lose("The bus does not speak D-Bus.")
                return
            data = b""
        try:
            for message in self._parser.feed(data):
                self._take(message)
                if self._transport is None:
                    return
        except ValueError as error:
            self.lose(str(error))

    def _authenticate(self, line: bytes) -> None:
        if line.startswith(b"OK "):
            self.bus_id = line[3:].decode(errors="replace").strip()
            rest, self._line = self._line, None
            self._transport.write(b"BEGIN\r\n")
            self.call_bus("Hello", then=self._welcome)
            self.data_received(bytes(rest or b""))
        elif line.strip() != b"DATA":
            self.lose("The bus closed the connection instead of accepting it; it may belong to another user.")

    def _welcome(self, answer: Message | None, error: NotifyBusError | None) -> None:
        if answer:
            self.name = str(answer.body()[0])
        if not self._accepted.done():
            if answer:
                self._accepted.set_result(None)
            else:
                self._accepted.set_exception(NoBus(f"The bus refuses this program: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails what waits for answers."""
        self.lose(str(exc) if exc else "The bus has closed the connection.")

    def lose(self, reason: str) -> None:
        """Ends the connection, and says why."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        transport.abort()
        error = NoBus(reason)
        if not self._accepted.done():
            self._accepted.set_exception(error)
            self._accepted.exception()  # The caller that waits for it may have given up.
        calls, self._calls = self._calls, {}
        for _, then, timer in calls.values():
            timer.cancel()
            then(None, error)
        if self.name:
            self._on_lost(error)

    def close(self) -> None:
        """Leaves the bus, after what was written."""
        self._on_lost = lambda error: None
        transport, self._transport = self._transport, None
        if transport:
            transport.close()
        for _, _, timer in self._calls.values():
            timer.cancel()
        self._calls = {}

    def _leave_to_parent(self) -> None:
        # The transport must neither shut it down nor close the descriptor that has its number next.
        if self._socket:
            with contextlib.suppress(OSError):
                os.close(self._socket.detach())

    def pause_writing(self) -> None:
        """The bus does not keep up."""
        self.is_writable = False

    def resume_writing(self) -> None:
        """The bus has caught up."""
        self.is_writable = True
        self.on_writable()

    def send(self, kind: int, flags: int, arguments: tuple[Any, ...], **fields: Any) -> int:
        """Sends a message, and returns its serial number."""
        self._serial = self._serial % 0xFFFFFFFF + 1
        if self._transport:
            self._transport.write(marshal(kind, self._serial, flags, fields, arguments))
        return self._serial

    def post(self, names: list[str]) -> None:
        """Sends the signals for names."""
        data = []
        for name in names:
            self._serial = self._serial % 0xFFFFFFFF + 1
            start, end = _signal(name)
            data += [start, self._serial.to_bytes(4, "little"), end]
        if self._transport:
            self._transport.write(b"".join(data))

    def call(
        self,
        destination: str,
        path: str,
        member: str,
        signature: str,
        *arguments: Any,
        interface: str = "",
        then: Answer | None = None,
        flags: int = 0,
        time: float = ANSWER_TIME,
    ) -> None:
        """Calls a method. `then` gets the answer once; without it none is asked for."""
        fields = {"destination": destination, "path": path, "interface": interface or destination, "member": member}
        if signature:
            fields["signature"] = signature
        serial = self.send(CALL, flags | (0 if then else NO_REPLY), arguments, **fields)
        if then and self._transport is None:
            then(None, NoBus("There is no connection to the bus."))
        elif then:
            self._calls[serial] = (destination, then, self._loop.call_later(time, self._expire, serial))

    def call_bus(self, member: str, *arguments: str, then: Answer | None = None) -> None:
        """Calls the bus itself, all of whose methods that are used here take one string, or nothing."""
        # Nothing is started to answer.
        self.call(BUS, BUS_PATH, member, "s" * len(arguments), *arguments, then=then, flags=NO_AUTO_START)

    def ask(self, destination: str, path: str, member: str, *arguments: Any, **options: Any) -> asyncio.Future[Any]:
        """Calls a method, for callers that can wait: the future has the arguments of the answer."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def answered(answer: Message | None, error: NotifyBusError | None) -> None:
            if not future.done():
                if answer:
                    future.set_result(answer.body())
                else:
                    future.set_exception(error or NoBus(""))

        self.call(destination, path, member, *arguments, then=answered, **options)
        return future

    def reply(self, call: Message, signature: str = "", *arguments: Any, error: str = "") -> None:
        """Answers a call, if that is wanted."""
        if not call.flags & NO_REPLY:
            fields = {"destination": call.get("sender") or BUS, "reply": call.serial}
            fields.update({"error": error} if error else {})
            fields.update({"signature": signature} if signature else {})
            self.send(ERROR if error else RETURN, NO_REPLY, arguments, **fields)

    def _expire(self, serial: int) -> None:
        destination, then, _ = self._calls.pop(serial)
        then(None, Refused(f"There is no answer from {destination}.", f"{BUS}.Error.NoReply"))

    def _take(self, message: Message) -> None:
        if message.kind in (RETURN, ERROR):
            pending = self._calls.get(message.get("reply") or 0)
            # The bus lets an answer come only from who was called; its own name stands for the owner's.
            if pending and (pending[0] == message.get("sender") or not pending[0].startswith(":") and pending[0] != BUS):
                del self._calls[message.get("reply")]
                pending[2].cancel()
                if message.kind == RETURN:
                    pending[1](message, None)
                else:
                    texts = message.body() if (message.get("signature") or "").startswith("s") else [""]
                    pending[1](None, Refused(str(texts[0]), str(message.get("error"))))
        elif message.kind in (CALL, SIGNAL):
            self._on_message(message)
