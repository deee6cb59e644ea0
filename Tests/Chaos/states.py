# SPDX-License-Identifier: Apache-2.0
"""Judges the states of names, by notify-state(1): the agent keeps a state as long as some program observes the name, and it
outlives an agent that is killed, since one of those who observe the name remembers it.

One program sets the states, one after the other, and observes nothing. So a reader gets the last state that was set, or
one that was being set, or that was set in vain.
"""

import collections

from facts import GRACE, SECOND, SLOW, Violation
from plan import STATES

Change = collections.namedtuple("Change", "begin end succeeded value")


class States:
    def __init__(self):
        self.changes = collections.defaultdict(list)
        # When agents were killed. A state that no other process has been told by then is lost with the agent.
        self.ends = []
        # When programs stopped observing a name. If no agent runs, those that then remember its state forget it.
        self.cancellations = collections.defaultdict(list)
        self.counts = collections.Counter()

    def judge(self, records, acts):
        """What is wrong with what was read, given what all programs did in a round."""
        self.ends += [(act["before"], act["after"]) for act in acts if act["act"] in ("kill-agent", "restart-bus")]
        away = [
            (act["before"], act["after"] + GRACE) for act in acts
            if act["act"] in ("kill-agent", "replace-agent", "stop-agent", "restart-bus")
        ]
        for some in records.values():
            for record in some:
                if record.what == "V":
                    name, value = record.name.split()[:2]
                    self.changes[name].append(Change(record.begin, record.end, record.status == 0, int(value)))
                elif record.what == "C" and record.name in STATES:
                    self.cancellations[record.name].append(record)
        for who, some in records.items():
            for record in some:
                if record.what in "VG" and record.status != 0:
                    # Programs give up after two seconds.
                    if record.end - record.begin > SLOW:
                        self.counts["questions that took too long"] += 1
                    elif not any(begin < record.end and record.begin < end for begin, end in away):
                        text = f"{'set' if record.what == 'V' else 'read'}: {record.status}"
                        yield Violation("a call without an answer", who, record.name, text, [record.begin, record.end])
                elif record.what == "G":
                    yield from self.judge_read(who, record)

    def judge_read(self, who, record):
        # A new agent has yet to be told.
        if any(begin < record.end and record.begin < end + GRACE for begin, end in self.ends):
            self.counts["states that may be anything"] += 1
            return
        name, value = record.name.split()[:2]
        allowed = {0}
        for change in self.changes[name]:
            if change.begin >= record.end:
                break
            if change.succeeded and change.end <= record.begin and not self.is_lost(name, change):
                allowed = set()
            allowed.add(change.value)
        self.counts["states as they were set" if len(allowed) == 1 else "states that were being set"] += 1
        if int(value) not in allowed:
            text = f"it was {value}, and must be {' or '.join(map(str, sorted(allowed)))}"
            yield Violation("a state that was lost", who, name, text, [record.begin, record.end])

    def is_lost(self, name, change):
        """Whether an agent ended before it has had time to tell a program to remember it, or the one that it told has stopped
        observing the name about that time.
        """
        return any(
            change.end < end + GRACE and (
                begin - SECOND < change.end
                or any(begin - SECOND < gone.end and gone.begin < end + GRACE for gone in self.cancellations[name])
            )
            for begin, end in self.ends
        )
