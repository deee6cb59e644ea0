# SPDX-License-Identifier: Apache-2.0
"""The center: posts and observes names on one bus."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any, Awaitable, Callable

from ._connection import Connection
from ._errors import Closed, NotifyBusError, QueueFull
from ._fork import INHERITED, share
from ._lifecycle import Lifecycle
from ._names import Subject, check, is_owned, is_post, may_post, stays_in_process
from ._queue import CoalescingQueue
from ._registration import Notifications, Observation, Registration
from ._wire import CALL, NO_AUTO_START, Message

# Seconds between attempts to connect: the first, and the longest.
FIRST_DELAY, LAST_DELAY = 0.02, 5.0
# How many senders the bus is asked about at once, and how many answers are kept.
QUESTION_LIMIT, USER_LIMIT = 100, 1000
# Seconds that the bus can still say who has posted a `user.uid.` name.
OWNER_TIME = 1.0


def _program_name() -> str:
    try:
        with open("/proc/self/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


class _Topic:
    """What at least one registration observes."""

    def __init__(self) -> None:
        self.users: dict[Registration, None] = {}
        self.pending: set[str] = set()
        self.error: NotifyBusError | None = None
        self.waiting: list[asyncio.Future[None]] = []


class Center:
    """Posts and observes names on one bus, with one connection, which it opens at its first use.

    It belongs to the event loop in which it is used first. If the bus goes away, it reconnects and registers everything
    again; what was posted meanwhile is lost. A bus that lives on, but has cut it off, makes each observed name heard once.
    Once it was used, the child of a fork can't use it: there every call but `close` raises `Closed`.

    `bus` is `session`, `system` or a D-Bus address; without it, the environment says which: `NOTIFYBUS_ADDRESS`, or else
    the session bus. `on_connection` is called with None when everything is registered with a bus, and with an error
    when the connection is lost; `on_state` with `foreground`, `background` or `suspended` when that changes.
    """

    def __init__(
        self,
        bus: str | None = None,
        *,
        on_connection: Callable[[NotifyBusError | None], object] | None = None,
        on_state: Callable[[str], object] | None = None,
    ) -> None:
        self.dropped = 0  # How many notifications were not delivered: in the background, or when a queue was full.
        self.hears_others = True  # False in a sandbox that keeps the posts of others out.
        self.program = _program_name()
        self._bus = bus
        self._tell_connection = on_connection or (lambda error: None)
        self._tell_state = on_state or (lambda state: None)
        self._link: Connection | None = None
        self._bus_id = ""
        self._connecting: asyncio.Task[None] | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._is_closed = self._is_announced = self._has_lifecycle = False
        self._lifecycle = Lifecycle(self)
        self._subjects: dict[Subject, _Topic] = {}
        self._prefixes: dict[Subject, _Topic] = {}  # Those of them that are prefixes.
        self._outbox = CoalescingQueue()
        self._flushes: list[asyncio.Future[Any]] = []
        self._users: dict[str, int] = {}
        self._held: dict[str, CoalescingQueue] = {}
        self._has_posted, self._owned_until = False, 0.0
        self._closed_because = "The center is closed."
        share(self)

    async def __aenter__(self) -> Center:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as it knows."""
        return self._link is not None

    @property
    def state(self) -> str:
        """The lifecycle state: `foreground`, `background` or `suspended`."""
        return self._lifecycle.state

    # --- Posting ---

    async def post(self, name: str) -> None:
        """Posts a name. When this returns, the bus has routed it to everybody who observes it."""
        check(name)
        if not stays_in_process(name):
            await self._ready()
        self.post_nowait(name)
        await self.flush()

    def post_nowait(self, name: str) -> None:
        """Posts a name without waiting for anything.

        While the bus does not keep up, or is away, 4,096 posts wait individually; of those beyond, equal names are
        coalesced, and other names are refused with `QueueFull` when 65,536 wait.
        """
        check(name)
        if self._is_closed:
            raise Closed(self._closed_because)
        if stays_in_process(name):
            self._hear(name)
        elif not self._outbox.put(name):
            raise QueueFull("65,536 names wait to be written.")
        elif self._link:
            self._pump()
        else:
            self._start_connecting()

    async def flush(self) -> None:
        """Returns when the bus has routed every earlier post."""
        if not self._link and not self._outbox and self._closed_because != INHERITED:
            return
        await self._ready()
        flush: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._flushes.append(flush)
        self._pump()
        await flush

    def _pump(self) -> None:
        link = self._link
        while link and link.is_writable and self._outbox:
            # As many as one call of the system takes.
            names = [self._outbox.take() for _ in range(min(64, len(self._outbox)))]
            link.post(names)
            self._has_posted = True
            if any(is_owned(name) for name in names):
                self._owned_until = time.monotonic() + OWNER_TIME
        if link and not self._outbox and self._flushes:
            flushes, self._flushes = self._flushes, []

            def answered(answer: Message | None, error: NotifyBusError | None) -> None:
                for flush in flushes:
                    if not flush.done():
                        flush.set_exception(error) if error else flush.set_result(None)

            link.call_bus("GetId", then=answered)

    # --- Observing ---

    def notifications(self, *patterns: str) -> Notifications:
        """Notifications of names, and of prefixes: `com.example.*`, or `*` for everything, as an iterator."""
        return Notifications(self, patterns)

    async def observe(self, callback: Callable[[str], object], *patterns: str) -> Observation:
        """Calls a function with each name that is posted from now on. When this returns, every later post is heard."""
        observation = Observation(self, callback, patterns)
        await self._add(observation)
        return observation

    async def next(
        self,
        *patterns: str,
        timeout: float | None = None,
        once_live: Callable[[], Awaitable[object] | object] | None = None,
    ) -> str:
        """The next name that is posted; `once_live` runs once, when every later post is heard.

        Raises `TimeoutError` after so many seconds, which include the time for the bus.
        """

        async def wait() -> str:
            async with self.notifications(*patterns) as names:
                if once_live:
                    result = once_live()
                    if inspect.isawaitable(result):
                        await result
                async for name in names:
                    return name
            raise Closed(self._closed_because)

        try:
            return await asyncio.wait_for(wait(), timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(f"Nothing was posted within {timeout:g} s.") from None

    async def report(self, state: str) -> None:
        """Reports the state in which this program wants to be. The agent decides."""
        if self._is_closed:
            raise Closed(self._closed_because)
        await self._lifecycle.report(state)

    async def _add(self, registration: Registration) -> None:
        if self._is_closed:
            raise Closed(self._closed_because)
        registration.is_active = True
        loop, live = asyncio.get_running_loop(), []
        try:
            for subject in registration._subjects:
                topic = self._subjects.get(subject)
                if not topic:
                    topic = self._subjects[subject] = _Topic()
                    if subject.is_prefix:
                        self._prefixes[subject] = topic
                    if subject.rules():
                        topic.pending = {"agent", "rule"}
                        if self._has_lifecycle:
                            self._lifecycle.added(subject)
                            self._put_rule(subject)
                topic.users[registration] = None
                if subject.rules():
                    live.append(loop.create_future())
                    # If this fails earlier, nothing asks for it.
                    live[-1].add_done_callback(lambda future: future.cancelled() or future.exception())
                    topic.waiting.append(live[-1])
            if live:
                await self._ready()
                if not self._has_lifecycle:
                    self._begin_observing(False, False)
                self._confirm_all()
                await asyncio.gather(*live)
        except BaseException:
            registration.cancel()
            raise

    def _remove(self, registration: Registration) -> None:
        for subject in registration._subjects:
            topic = self._subjects.get(subject)
            if topic and topic.users.pop(registration, True) is None and not topic.users:
                del self._subjects[subject]
                self._prefixes.pop(subject, None)
                if self._has_lifecycle and subject.rules():
                    self._withdraw_rules(subject)
                    self._lifecycle.removed(subject)

    def _begin_observing(self, was_cut_off: bool, is_on_another_bus: bool) -> None:
        self._has_lifecycle = True
        self._lifecycle.connected(was_cut_off, is_on_another_bus)

    def _put_rule(self, subject: Subject) -> None:
        topic, link = self._subjects[subject], self._link
        # Where nothing is to be heard, or by the relay alone, there are no rules.
        if not link or not self._lifecycle.has_rules or self._lifecycle.hears_by_relay:
            self._confirm(subject, "rule")
            return
        rules = subject.rules()
        left = len(rules)

        def answered(answer: Message | None, error: NotifyBusError | None) -> None:
            nonlocal left
            left -= 1
            if self._link is link and self._subjects.get(subject) is topic and (error or not left):
                self._confirm(subject, "rule", error)

        for rule in rules:
            link.call_bus("AddMatch", rule, then=answered)

    def _put_rules(self) -> None:
        for subject in list(self._subjects):
            self._put_rule(subject)

    def _withdraw_rules(self, *subjects: Subject) -> None:
        if self._link and self._lifecycle.has_rules and not self._lifecycle.hears_by_relay:
            for subject in subjects:
                for rule in subject.rules():
                    self._link.call_bus("RemoveMatch", rule)

    def _confirm(self, subject: Subject, what: str, error: NotifyBusError | None = None) -> None:
        topic = self._subjects.get(subject)
        if topic:
            topic.pending.discard(what)
            topic.error = error or topic.error
            self._confirm_all([topic])

    def _confirm_all(self, topics: list[_Topic] | None = None) -> None:
        """Tells those who wait what is live now."""
        if not self._link or not self._lifecycle.has_entered:
            return
        for topic in topics or list(self._subjects.values()):
            if topic.error or not topic.pending:
                waiting, topic.waiting = topic.waiting, []
                for live in waiting:
                    if not live.done():
                        live.set_exception(topic.error) if topic.error else live.set_result(None)
        if not self._is_announced and not any(topic.pending for topic in self._subjects.values()):
            self._announce(None)

    # --- Hearing ---

    def _take(self, message: Message) -> None:
        if message.kind == CALL:
            self._lifecycle.handle_call(message)
        elif message.get("member") == "Posted" and message.get("destination") is None:
            self._take_post(message)
        elif self._has_lifecycle:
            self._lifecycle.handle_signal(message)

    def _take_post(self, message: Message) -> None:
        """Anyone can send anything, so this believes only posts of names that their senders may post."""
        if message.get("signature") != "s":
            return
        name, sender = message.body()[0], message.get("sender") or ""
        if not is_post(name, message.get("path"), message.get("interface")):
            return
        if not self._lifecycle.is_open:
            self.dropped += 1
        elif sender in self._held:
            # Posts of one sender are heard in order.
            self._held[sender].put(name)
        elif not is_owned(name) or sender in self._users:
            if may_post(name, self._users.get(sender)):
                self._hear(name)
        elif len(self._held) < QUESTION_LIMIT and self._link:
            self._held[sender] = CoalescingQueue()
            self._held[sender].put(name)
            self._link.call_bus("GetConnectionUnixUser", sender, then=lambda *answer: self._release(sender, *answer))
        else:
            self.dropped += 1

    def _release(self, sender: str, answer: Message | None, error: NotifyBusError | None) -> None:
        user = answer.body()[0] if answer else None
        if user is not None:
            if len(self._users) >= USER_LIMIT:
                self._users.clear()
            self._users[sender] = user
        names = self._held.pop(sender, None)
        while names:
            name = names.take()
            if may_post(name, user):
                self._hear(name)

    def _hear(self, name: str) -> None:
        if not self._lifecycle.is_open and not stays_in_process(name):
            self.dropped += 1
            return
        topic = self._subjects.get(Subject(name, False))
        audience = dict(topic.users) if topic else {}
        for subject, topic in self._prefixes.items():
            if subject.includes(name):
                audience.update(topic.users)
        for registration in audience:
            if registration.is_active:
                registration._push(name)

    # An error that a callback raises goes to the loop's handler, and can't disturb what happens here.
    def _announce(self, error: NotifyBusError | None) -> None:
        self._is_announced = error is None
        asyncio.get_running_loop().call_soon(self._tell_connection, error)

    def _announce_state(self, state: str) -> None:
        asyncio.get_running_loop().call_soon(self._tell_state, state)

    # --- The connection ---

    async def _ready(self) -> None:
        if self._is_closed:
            raise Closed(self._closed_because)
        if not self._link:
            connecting = self._start_connecting()
            try:
                await asyncio.shield(connecting)
            except asyncio.CancelledError:
                if self._is_closed and connecting.cancelled():
                    raise Closed(self._closed_because) from None
                raise

    def _start_connecting(self) -> asyncio.Task[None]:
        if not self._connecting or self._connecting.done():
            self._connecting = asyncio.get_running_loop().create_task(self._open())
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._connecting

    async def _open(self) -> None:
        link = await Connection.open(self._bus, self._take, self._lost)
        if self._is_closed:
            link.close()
            raise Closed(self._closed_because)
        was_here, self._bus_id = self._bus_id == link.bus_id, link.bus_id
        is_first = not self._has_lifecycle
        self._link, link.on_writable = link, self._pump
        if self._subjects and any(subject.rules() for subject in self._subjects):
            self._begin_observing(not is_first and was_here, not is_first and not was_here)
        else:
            self._announce(None)
        self._pump()

    def _lost(self, error: NotifyBusError) -> None:
        self._link = None
        self._lifecycle.lost()
        for subject, topic in self._subjects.items():
            topic.pending, topic.error = ({"agent", "rule"} if subject.rules() else set()), None
        self._held.clear()
        self._users.clear()
        flushes, self._flushes = self._flushes, []
        for flush in flushes:
            if not flush.done():
                flush.set_exception(error)
        self._announce(error)
        if self._subjects or self._outbox:
            self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        delay = FIRST_DELAY
        while not self._link and not self._is_closed and (self._subjects or self._outbox):
            try:
                await self._ready()
            except (NotifyBusError, OSError):
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_DELAY)

    async def close(self) -> None:
        """Leaves the bus, once it has routed what was posted. Iterators end, and nothing more is heard."""
        if self._is_closed:
            return
        try:
            await self._say_goodbye()
        except NotifyBusError:
            pass
        self._is_closed = True
        for topic in list(self._subjects.values()):
            waiting, topic.waiting = topic.waiting, []
            for live in waiting:
                if not live.done():
                    live.set_exception(Closed(self._closed_because))
            for registration in list(topic.users):
                registration.cancel()
        for task in (self._connecting, self._reconnecting):
            if task:
                task.cancel()
        link, self._link = self._link, None
        self._lifecycle._limit(None)
        if link:
            link.close()

    def _leave_to_parent(self) -> None:
        """Closes it in the child of a fork, unless it was not used yet. Nothing that belongs to the loop is touched."""
        if not self._connecting and not self._subjects:
            return
        self._is_closed, self._closed_because, self._link = True, INHERITED, None
        for topic in self._subjects.values():
            for registration in topic.users:
                registration.is_active = False

    async def _say_goodbye(self) -> None:
        """The bus can say who has posted only as long as the poster is connected."""
        await self.flush()
        if self._link and self._has_posted:
            options = {"interface": "org.freedesktop.DBus.Peer", "flags": NO_AUTO_START, "time": OWNER_TIME}
            try:
                await self._link.ask("org.notifybus.Launch1", "/org/notifybus/Agent1", "Ping", "", **options)
            except NotifyBusError:
                pass  # No agent starts programs.
            await asyncio.sleep(max(0.0, self._owned_until - time.monotonic()))
