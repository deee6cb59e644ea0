# SPDX-License-Identifier: Apache-2.0
"""The observer's half of the lifecycle protocol: what Documentation/lifecycle-protocol.md calls an observer.

It hands out no duplicate of its socket, so an agent can't park it. And it says nothing to the agent that it need not
answer, so it is never behind.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Iterable

from ._connection import BUS, BUS_PATH
from ._errors import NotifyBusError
from ._wire import Message

if TYPE_CHECKING:
    from ._center import Center

AGENT, RELAY = "org.notifybus.Agent1", "org.notifybus.Relay1"
OBSERVER, OBSERVER_PATH = "org.notifybus.Observer1", "/org/notifybus/Observer1"
# Seconds that the agent has, and the relay, without which nothing is heard.
AGENT_TIME, RELAY_TIME = 2.0, 10.0
# More names mean that another call follows.
DELIVERY_LIMIT = 4096
# Seconds until it registers again with an agent that has refused it.
FIRST_DELAY, LAST_DELAY = 0.25, 60.0


def needs_relay(bus: str | None) -> bool:
    """Whether a proxy keeps the posts of others from this program, which a relay may hear for it."""
    wish = os.environ.get("NOTIFYBUS_RELAY")
    if wish in ("yes", "no"):
        return wish == "yes" and bus != "system"
    try:
        with open("/.flatpak-info", encoding="utf-8", errors="replace") as file:
            lines = file.read(65536).splitlines()
    except OSError:
        return False
    shared = next((line[8:].split(";") for line in lines if line.startswith("sockets=")), [])
    return ("system-bus" if bus == "system" else "session-bus") not in shared


class Lifecycle:
    """Where a center stands with the agent, and what that means for what it hears."""

    def __init__(self, center: Center) -> None:
        self._center = center
        self.state = "foreground"
        self.is_open = self.has_rules = True  # Whether posts pass, and whether the bus is to send them.
        self.has_entered = False  # Whether the agent has said in which state the connection begins, or there is none.
        self.agent = ""
        self.hears_by_relay = False
        self._service = AGENT
        self._search = 0  # Counts, so that late answers can be told.
        self._change = 0
        self._candidate = self._former = ""
        self._known: list[str] = []  # The unique names by which the agent may know this program.
        self._decider = "default"
        self._reported = ""
        self._kept: dict[str, tuple[int, int]] = {}
        self._missed: dict[str, None] = {}
        # Whether there were posts with unknown names, or may have been, and whether the agent is to deliver some.
        self._is_unknown = self._is_doubtful = self._expects_delivery = False
        self._was_cut_off = False
        self._delay = FIRST_DELAY
        self._untold: dict[Any, None] = {}
        self._is_telling = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def _link(self) -> Any:
        return self._center._link

    @property
    def _path(self) -> str:
        return "/org/notifybus/Relay1" if self._service == RELAY else "/org/notifybus/Agent1"

    # --- The connection ---

    def connected(self, was_cut_off: bool, is_on_another_bus: bool) -> None:
        """There is a connection."""
        self.hears_by_relay = needs_relay(self._center._bus)
        self._service = RELAY if self.hears_by_relay else AGENT
        self.has_rules = self.is_open
        self._was_cut_off = was_cut_off
        if is_on_another_bus and self._known:
            # The names of that bus may be those of others here. Its own replaces none, but says that it is not new.
            self._known, self._former = [self._link.name], ""
        rule = f"type='signal',sender='{BUS}',interface='{BUS}',member='NameOwnerChanged',arg0='{self._service}'"
        self._link.call_bus("AddMatch", rule)
        # Before the agent is asked, so that every post is heard from its answer on.
        self._center._put_rules()
        self._find("")

    def lost(self) -> None:
        """The connection is lost."""
        self._former = self.agent or self._former
        self.agent = self._candidate = ""
        self.has_entered = self._is_telling = False
        self._search += 1
        self._change += 1
        self._untold.clear()
        self._is_unknown = self._is_unknown or self._was_cut_off or self.state == "suspended"
        self._limit(None)

    def _limit(self, seconds: float | None) -> None:
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self._give_up)

    def _find(self, owner: str) -> None:
        self._search += 1
        self.agent = self._candidate = ""
        search, link = self._search, self._link
        self._limit(RELAY_TIME if self.hears_by_relay else AGENT_TIME)

        def owned(answer: Message | None, error: NotifyBusError | None) -> None:
            if search != self._search:
                return
            if answer:
                trust(str(answer.body()[0]))
            else:
                link.call(BUS, BUS_PATH, "StartServiceByName", "su", self._service, 0, then=started)

        def started(answer: Message | None, error: NotifyBusError | None) -> None:
            if search == self._search:
                if answer:
                    link.call_bus("GetNameOwner", self._service, then=found)
                else:
                    self._ended(None)

        def found(answer: Message | None, error: NotifyBusError | None) -> None:
            if search == self._search:
                trust(str(answer.body()[0])) if answer else self._ended(None)

        def trust(agent: str) -> None:
            # It may silence the program, so it must be root or the program's own user.
            users: list[Any] = []

            def learned(answer: Message | None, error: NotifyBusError | None) -> None:
                users.append(answer.body()[0] if answer else None)
                if search == self._search and len(users) == 2:
                    is_trusted = users[0] == 0 or users[0] is not None and users[0] == users[1]
                    self._register(agent) if is_trusted else self._ended(None)

            link.call_bus("GetConnectionUnixUser", agent, then=learned)
            link.call_bus("GetConnectionUnixUser", link.name, then=learned)

        if owner:
            trust(owner)
        else:
            link.call_bus("GetNameOwner", self._service, then=owned)

    def _register(self, agent: str) -> None:
        self._candidate = agent
        names, prefixes = self._subjects(self._center._subjects)
        options: dict[str, tuple[str, Any]] = {
            "names": ("as", names),
            "prefixes": ("as", prefixes),
            "state": ("s", self.state),
            "decider": ("s", self._decider),
            "previous": ("s", self._known[-1] if self._known else ""),
            "program": ("s", self._center.program),
            "states": ("a(stt)", [(name, *state) for name, state in self._kept.items()]),
        }
        if self._reported:
            options["reported"] = ("s", self._reported)
        reported, search = dict.fromkeys(self._center._subjects), self._search
        self._untold.clear()

        def answered(answer: Message | None, error: NotifyBusError | None) -> None:
            if search == self._search:
                if not answer:
                    # Its user may have had too many calls pending for a moment.
                    self._delay = min(self._delay * 2, LAST_DELAY)
                    asyncio.get_running_loop().call_later(self._delay, self._try_again, search, agent)
                self._ended(answer.body() if answer else None, reported)

        self._link.call(agent, self._path, "Register", "a{sv}", options, interface=self._service, then=answered)

    def _try_again(self, search: int, agent: str) -> None:
        if search == self._search and self._link and not self.agent:
            self._find(agent)

    def _ended(self, answer: list[Any] | None, reported: Iterable[Any] = ()) -> None:
        """The agent has answered, has refused, or does not exist."""
        state, pending, is_complete = answer or ("", [], False)
        self.agent, self._candidate = self._candidate if answer else "", ""
        if answer:
            self._known, self._delay = [self._link.name], FIRST_DELAY
        is_in_doubt = self._was_cut_off or self._is_doubtful or self._former not in ("", self.agent)
        self._is_unknown = self._is_unknown or is_in_doubt and not is_complete
        self._former, self._is_doubtful, self._was_cut_off = "", False, False
        self._expects_delivery = state == "foreground" and is_complete
        if answer is None and self.hears_by_relay:
            # It observes as if it were outside of a sandbox, and hears what its proxy lets in.
            self.hears_by_relay = False
            self._center.hears_others = False
            self._center._put_rules()
        if answer:
            self._limit(None)
            self._change_to(state, pending)
        elif self.state == "foreground":
            self._limit(None)
            self._change_to("foreground", [])
        for subject in reported if answer else list(self._center._subjects):
            self._center._confirm(subject, "agent")
        self._tell()

    def _give_up(self) -> None:
        """No agent has answered in time."""
        self._search += 1
        if self._candidate or not self.has_entered:
            self._candidate = ""
            self._ended(None)
        self._is_unknown, self._is_doubtful = self._is_unknown or self._is_doubtful, False
        self._decider = "default"
        self._change_to("foreground", [])

    def _owner_changed(self, owner: str) -> None:
        if owner in (self.agent, self._candidate) and owner:
            return
        self._is_doubtful = self._is_doubtful or self.state == "suspended" or self._expects_delivery
        self._expects_delivery = False
        if self.hears_by_relay and self.agent:
            self._is_unknown = True
        if owner or self._service == RELAY:
            self.hears_by_relay = self._service == RELAY
            self._find(owner)
        elif self.agent or self._candidate:
            self._search += 1
            self.agent = self._candidate = ""
            self._limit(AGENT_TIME)

    # --- What the agent is told ---

    @staticmethod
    def _subjects(subjects: Iterable[Any]) -> tuple[list[str], list[str]]:
        sent = [each for each in subjects if each.rules()]
        return [each.text for each in sent if not each.is_prefix], [each.text for each in sent if each.is_prefix]

    def added(self, subject: Any) -> None:
        """A subject is observed; the center learns when the agent knows."""
        if self._candidate or self.agent or not self.has_entered:
            self._untold[subject] = None
            self._tell()
        else:
            self._center._confirm(subject, "agent")

    def removed(self, subject: Any) -> None:
        """A subject is no longer observed."""
        self._untold.pop(subject, None)
        if self.agent:
            arguments = self._subjects([subject])
            self._link.call(self.agent, self._path, "RemoveNames", "asas", *arguments, interface=self._service)

    def _tell(self) -> None:
        """One call at a time, with everything that was added meanwhile."""
        if self._candidate or self._is_telling or not self._untold or not self.has_entered:
            return
        told, search = list(self._untold), self._search
        self._untold.clear()
        if not self.agent:
            for subject in told:
                self._center._confirm(subject, "agent")
            return
        self._is_telling = True

        def answered(answer: Message | None, error: NotifyBusError | None) -> None:
            self._is_telling = False
            if search == self._search:
                # Without it, the names that are posted while the program is suspended are unknown.
                self._is_unknown = self._is_unknown or (answer is None and self.state == "suspended")
                for subject in told:
                    self._center._confirm(subject, "agent", error if self.hears_by_relay else None)
            self._tell()

        arguments = self._subjects(told)
        options: Any = {"interface": self._service, "then": answered, "time": AGENT_TIME}
        self._link.call(self.agent, self._path, "AddNames", "asas", *arguments, **options)

    async def report(self, state: str) -> None:
        """Reports the state in which the program wants to be."""
        if not self.agent:
            raise NotifyBusError("There is no lifecycle agent, or this program observes nothing.")
        await self._link.ask(self.agent, self._path, "Report", "s", state, interface=self._service)
        self._reported = state

    # --- What the agent says ---

    def handle_signal(self, message: Message) -> bool:
        """Takes a signal; tells whether it was one for this part."""
        if message.get("member") == "NameOwnerChanged" and message.get("sender") == BUS:
            name, _, owner = message.body()
            if name == self._service:
                self._owner_changed(owner)
        elif message.get("member") == "Decided" and message.get("interface") == self._service:
            if message.get("sender") in (self.agent, self._candidate) and message.get("signature") == "s":
                self._decider = message.body()[0]
        else:
            return False
        return True

    def handle_call(self, call: Message) -> None:
        """Takes a call."""
        member, link = call.get("member"), self._link
        if call.get("sender") != self.agent and not link.is_writable:
            return  # Strangers are answered, but not while the bus has a lot to take.
        if call.get("interface") != OBSERVER or call.get("path") != OBSERVER_PATH:
            link.reply(call, "s", "There is no such method.", error=f"{BUS}.Error.UnknownMethod")
        elif call.get("sender") != self.agent or not self.agent:
            link.reply(call, "s", "Only the lifecycle agent may do this.", error=f"{BUS}.Error.AccessDenied")
        elif member == "SetState" and call.get("signature") == "su":
            state, _ = call.body()
            self._expects_delivery = state == "foreground" and self.state != "background"
            self._change_to(state, [], call)
        elif member == "Deliver" and call.get("signature") == "as":
            names = call.body()[0]
            self._expects_delivery = self._expects_delivery and len(names) >= DELIVERY_LIMIT
            self._missed.update(dict.fromkeys(names))
            self._deliver_missed()
            link.reply(call)
        elif member == "DeliverPosts" and call.get("signature") == "asas" and self._service == RELAY:
            for name in call.body()[0]:
                self._center._hear(name)
            link.reply(call)
        elif member == "KeepStates" and call.get("signature") == "a(stt)":
            # The next agent learns these from this connection, if this agent dies.
            for name, value, stamp in call.body()[0]:
                if any(subject.includes(name) for subject in self._center._subjects):
                    self._kept[name] = (value, stamp)
            link.reply(call)
        elif member != "Mark":
            link.reply(call, "s", "There is no such method.", error=f"{BUS}.Error.UnknownMethod")

    # --- States ---

    def _change_to(self, state: str, pending: list[str], call: Message | None = None) -> None:
        """Changes the state. It is in force, and the agent gets its answer, when the bus has nothing else on its way."""
        self._change += 1
        change, link = self._change, self._link
        if state == "foreground":
            self._missed.update(dict.fromkeys(pending))
            if self._is_unknown:
                # A spurious notification beats silence.
                self._missed.update(dict.fromkeys(self._subjects(self._center._subjects)[0]))
                self._is_unknown = False
            if not self.has_rules:
                self.has_rules = True
                self._center._put_rules()
        else:
            if state == "background":
                self._missed.clear()
                self._is_unknown = self._is_doubtful = False
            self._center._withdraw_rules(*self._center._subjects)
            self.is_open = self.has_rules = False

        def in_force(answer: Message | None, error: NotifyBusError | None) -> None:
            if error is not None and link is not self._link:
                return
            if change == self._change:
                self.is_open = state == "foreground"
                if self.state != state:
                    self.state = state
                    self._center._announce_state(state)
                self._deliver_missed()
                self.has_entered = True
                self._center._confirm_all()
                self._tell()
            if call:
                link.reply(call, "t", self._center.dropped)

        if state == "foreground" and self.is_open:
            in_force(None, None)
        else:
            link.call_bus("GetId", then=in_force)

    def _deliver_missed(self) -> None:
        while self.is_open and self._missed:
            name = next(iter(self._missed))
            del self._missed[name]
            self._center._hear(name)
