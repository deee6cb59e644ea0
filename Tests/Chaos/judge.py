#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what programs posted and heard with what the documents promise. It imports nothing of NotifyBus.

Every record has a time before and one after, so that each fact is known within an interval, and what can't be decided is
counted as such. For each observer and name, posts become entries: how often each must and may be heard, and from when on.
The promises hold if what was heard can be explained by the entries; see `excess` and `lack`.
"""

import bisect
import collections
import json
import math

import states
from facts import GRACE, SECOND, SLOW, Record, Violation

# A program that is stopped may hear again what it has heard just before, and with a connection goes what was on its way.
JUST_BEFORE = SECOND

# Nothing is queued in the bus when everything has settled: this is room for its allocator.
GROWTH = 32 << 20

FOREGROUND, BACKGROUND, SUSPENDED, UNKNOWN = "foreground", "background", "suspended", "unknown"
STATES = {
    "foreground": FOREGROUND, "resume": FOREGROUND, "release": FOREGROUND, "background": BACKGROUND,
    "suspend": SUSPENDED, "freeze": SUSPENDED,
}
# Acts that say themselves which state came of them.
TOLD = ("report", "nap", "wake")
# When there is another agent.
AGENTS = ("kill-agent", "replace-agent", "restart-bus")

# The table "What can still happen" of lifecycle.md.
ROWS = {
    "into-background": "going into the background: delivered or dropped",
    "from-background": "coming back from the background: dropped or delivered",
    "being-suspended": "being suspended: heard twice",
    "being-resumed": "being resumed: heard twice",
    "stopped": "stopped, not yet noticed: heard again",
    "agent-died": "suspended, parked or being resumed, and the agent dies: each name once, or a post twice",
    "stopped-resumed": "stopped, or its connection lost, while it is being resumed: each name once, or a post twice",
    "lost-changing": "the connection is lost while the state changes: dropped, or heard on resume",
    "lost-connection": "the connection is lost: a post is lost, or each name heard once",
    "bus-away": "the bus restarts: what is posted meanwhile is lost",
    "unregistered": "changed before the program has registered with a new agent",
}

Post = collections.namedtuple("Post", "poster number name begin end")
Segment = collections.namedtuple("Segment", "begin end state before after")
Trouble = collections.namedtuple("Trouble", "begin end row losing spurious")
# How often something must and may be heard from a time on, and by which row of the table it may.
Entry = collections.namedtuple("Entry", "begin most usual must row")


class Reader:
    """The lines of a file that have been added since the last time."""

    def __init__(self, path):
        self.path, self.offset = path, 0

    def lines(self):
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.offset += len(whole)
        return whole.decode(errors="replace").splitlines()


class Judge:
    def __init__(self, folder, observers, posters, setter):
        self.folder, self.observers, self.posters = folder, observers, posters
        self.readers = {who: Reader(folder / f"{who}.log") for who in [*observers, *posters, setter]}
        self.states = states.States()
        self.driver = Reader(folder / "driver.log")
        # Registrations that live on from round to round: name to when it was live.
        self.live = {who: {} for who in observers}
        self.rows = collections.Counter()
        self.counts = collections.Counter()
        self.memory = self.first_memory = 0

    # A round

    def judge(self, output, title):
        """Judges what was recorded since the last time; says what is wrong, and returns whether nothing is."""
        acts = [json.loads(line) for line in self.driver.lines()]
        records = {}
        for who, reader in self.readers.items():
            records[who] = [self.parse(line) for line in reader.lines()]
        self.records = records
        heard = {who: [record for record in records[who] if record.what == "H"] for who in self.observers}
        posts = self.posts(records, heard)
        violations = []
        slow = [
            (record.begin - 2 * SECOND, record.end) for some in records.values() for record in some
            if record.what in "GV" and record.end - record.begin > SLOW
        ]
        acts += [{"act": "slow-agent", "who": "world", "before": begin, "after": end, "status": 0} for begin, end in slow]
        for act in acts:
            violations += self.judge_act(act, acts)
        violations += self.states.judge(records, acts)
        for who in self.observers:
            violations += self.judge_observer(who, records[who], heard[who], posts, self.with_reports(who, records[who], acts))
        if violations:
            violations.sort(key=lambda violation: violation.times[0])
            self.show(output, title, violations, posts, heard, acts)
        return not violations

    @staticmethod
    def parse(line):
        what, begin, end, status, name = line.split(" ", 4)
        return Record(what, int(begin), int(end), int(status), name)

    def posts(self, records, heard):
        """What was posted, with the times between which the bus has routed it: it had when a later post of the same
        program was heard by one that hears posts alone. Others may hear a name that has not been posted yet."""
        first = collections.defaultdict(list)
        for record in heard["untouched"]:
            if record.name.startswith("c.u."):
                first[record.name].append(record.begin)
        posts = []
        for who in self.posters:
            end, some = math.inf, []
            for number, record in reversed(list(enumerate(records[who]))):
                if record.what == "Y" and record.status == 0:
                    end = min(end, record.end)
                if record.what == "P":
                    end = min(end, *(time for time in first[record.name] if time >= record.begin), math.inf)
                    if record.status == 0:
                        some.append(Post(who, number, record.name, record.begin, max(end, record.end) if end < math.inf else end))
                    else:
                        self.counts["posts refused"] += 1
            posts += some
        self.counts["posts"] += len(posts)
        return sorted(posts, key=lambda post: post.begin)

    def judge_act(self, act, acts):
        if act["act"] == "settled":
            self.first_memory = self.first_memory or act["memory"]
            self.memory = max(self.memory, act["memory"])
            if act["memory"] > self.first_memory + GROWTH:
                text = f"{act['memory'] >> 20} MB, after {self.first_memory >> 20} MB in the first round"
                yield Violation("memory of the bus beyond its bound", "world", "-", text, [act["before"]])
        elif act["act"] == "stays-stopped":
            yield Violation("a program that stays stopped", act["who"], "-", "it was released, and is stopped", [act["before"]])
        elif act["act"] in (*STATES, *TOLD, "nap-on", "nap-off"):
            self.counts[act["act"]] += 1
            if act["status"] != 0 and not self.excuses(act, acts):
                text = f"{act['act']} ended with {act['status']}: {act['said']}"
                yield Violation("a command that failed", act["who"], "-", text, [act["before"], act["after"]])
        else:
            self.counts[act["act"]] += 1

    def excuses(self, act, acts):
        """Whether the agent or the bus was away while the command ran, or the machine too busy for five seconds to be enough."""
        starved = (min(act["after"], other["after"]) - max(act["before"], other["before"]) for other in acts if other["act"] == "starved")
        if act["status"] == 2 and sum(max(0, time) for time in starved) > SECOND:
            return True
        # Another agent knows nothing of who naps, and has yet to be followed by its relay.
        is_replaced = act["act"] in TOLD[1:] or self.observers.get(act["who"], {}).get("relay")
        away = ("kill-agent", "stop-agent", "slow-agent", "restart-bus", *(["replace-agent"] if is_replaced else []))

        def just_before(other, one):
            return other["before"] < one["after"] and one["before"] < other["after"] + GRACE

        return any(
            other["act"] in away and just_before(other, act)
            # A request to a connection that is cut, or by it, may have been answered in vain.
            or other["act"] == "cut" and other["who"] == act["who"] and just_before(other, act)
            # Stopped while another agent took over, it registers with that once it has read what came before.
            or other["act"] == "stop" and other["who"] == act["who"] and just_before(other, act)
            and any(change["act"] in AGENTS and just_before(change, other) for change in acts)
            for other in acts
        ) or self.observes_nothing(act)

    def observes_nothing(self, act):
        """Whether the program observed nothing just before or after the command: then it may have no connection."""
        names = set(self.live.get(act["who"], ["?"]))
        counts = [len(names)]
        for record in self.records.get(act["who"], []):
            if record.begin < act["after"] and record.what in "RC":
                if record.what == "R" and record.status == 0:
                    names.add(record.name)
                elif record.what == "C":
                    names.discard(record.name)
                counts = [count for count in counts if record.end > act["before"]] + [len(names)]
        return 0 in counts

    # One observer

    @staticmethod
    def with_reports(who, records, acts):
        """What happened, with what the program has reported."""
        reports = [
            {"act": "report", "who": who, "before": record.begin, "after": record.end, "status": record.status,
             "state": record.name.split()[0], "said": record.name}
            for record in records if record.what == "S"
        ]
        return sorted(acts + reports, key=lambda act: act["before"])

    def segments(self, who, acts):
        """In which state it was, and when. A person's word comes before the program's own."""
        segments, state, time, person, own = [], FOREGROUND, -math.inf, None, FOREGROUND
        for act in acts:
            what = act["act"]
            if act["who"] == who and what in (*STATES, *TOLD):
                new = act["state"] if what in TOLD else STATES[what]
                new = new if act["status"] == 0 else UNKNOWN
                if what in TOLD:
                    own = new
                else:
                    person = None if what == "release" and act["status"] == 0 else new
            elif what in AGENTS and "nap" in self.observers[who]:
                own = UNKNOWN
            elif what == "restart-bus" or what == "kill-agent" and act["gap"] > 1:
                # Whether it was in time isn't known. Without an agent everybody is in the foreground.
                person, own = UNKNOWN, UNKNOWN
            elif what == "cut" and act["who"] == who and self.is_silent(act, acts):
                # It has registered again with an agent that may not have answered within 2 seconds.
                person, own = UNKNOWN, UNKNOWN
            else:
                continue
            after = person or own
            if act["before"] < time:
                # Two at once: the result isn't known.
                last = segments.pop()
                person = own = state = UNKNOWN
                time = max(time, act["after"])
                segments.append(Segment(last.begin, time, None, last.before, UNKNOWN))
                continue
            segments.append(Segment(time, act["before"], state, state, state))
            segments.append(Segment(act["before"], act["after"], None, state, after))
            state, time = after, act["after"]
        segments.append(Segment(time, math.inf, state, state, state))
        return segments

    @staticmethod
    def is_silent(act, acts):
        """Whether the agent says nothing for longer than a second after this."""
        return any(
            other["act"] in ("stop-agent", "slow-agent") and other["before"] < act["after"] and act["before"] + SECOND < other["after"]
            for other in acts
        )

    def troubles(self, who, acts):
        """When it may have heard more than was posted, or less, by which row. For prefixes the names are unknown, so
        that posts are lost instead of heard once too often; the relay is a part of the agent."""
        facts, troubles = self.observers[who], []
        losing = "prefixes" in facts
        for act in acts:
            begin, end = act["before"], act["after"] + GRACE
            # With a relay goes what was on its way.
            early = JUST_BEFORE if facts.get("relay") else 0
            if act["who"] == who:
                if act["act"] == "stop":
                    troubles.append(Trouble(begin - JUST_BEFORE, end, "stopped", losing, True))
                elif act["act"] == "cut":
                    troubles.append(Trouble(begin - JUST_BEFORE, end, "lost-connection", losing, True))
            elif act["act"] in ("kill-agent", "stop-agent", "slow-agent"):
                troubles.append(Trouble(begin - early, end, "agent-died", losing, True))
            elif act["act"] == "replace-agent" and facts.get("relay"):
                # What only a prefix matches is handed over, unless that takes too long.
                is_late = act["after"] - begin > SECOND
                troubles.append(Trouble(begin - early, end, "agent-died", losing and is_late, True))
            elif act["act"] == "restart-bus":
                # With the bus goes what it has not passed on yet.
                troubles.append(Trouble(begin - JUST_BEFORE, end, "bus-away", True, True))
        # A stopped program comes back with the state that it has been given meanwhile.
        for act in sorted((act for act in acts if act["who"] == who and act["act"] in (*STATES, *TOLD)), key=lambda act: act["before"]):
            for index, trouble in enumerate(troubles):
                if trouble.row == "stopped" and trouble.begin < act["after"] and act["before"] < trouble.end:
                    troubles[index] = trouble._replace(end=max(trouble.end, act["after"] + GRACE))
        # An agent that is replaced waits for a change a second, and then hands over without it.
        for act in acts:
            for other in acts:
                if (
                    act["act"] == "replace-agent" and other["who"] == who and other["act"] in (*STATES, *TOLD, "stop")
                    and act["before"] < other["after"] and other["before"] < act["after"]
                    and max(act["after"] - act["before"], other["after"] - other["before"]) > SECOND
                ):
                    troubles.append(Trouble(other["before"], max(act["after"], other["after"]) + GRACE, "agent-died", losing, True))
        # Troubles while its state changes, or while another agent has yet to know all of it. They come first, so that
        # what happens then is counted as theirs.
        changes = [act for act in acts if act["who"] == who and act["act"] in (*STATES, *TOLD)]
        for act in acts:
            for change in changes:
                if act["before"] < change["after"] and change["before"] < act["after"]:
                    if act["who"] == who and act["act"] == "cut":
                        troubles.insert(0, Trouble(change["before"] - JUST_BEFORE, act["after"] + GRACE, "lost-changing", True, True))
                    elif act["act"] in AGENTS and facts.get("centers"):
                        troubles.insert(0, Trouble(change["before"], act["after"] + GRACE, "unregistered", True, True))
        # Troubles while it is being resumed, which another one may have begun.
        resumed = [
            (act["before"], act["after"] + GRACE) for act in acts
            if act["who"] == who and act["act"] in ("stop", *STATES) and act["act"] != "background"
        ]
        for act in acts:
            if act["who"] == who and act["act"] in ("stop", "cut"):
                if any(begin < act["before"] < end for begin, end in resumed):
                    troubles.insert(0, Trouble(act["before"], act["after"] + GRACE, "stopped-resumed", losing, True))
        return troubles

    def lengthened(self, who, act, acts):
        """A change that an agent has begun before it knew all connections of the program lasts until it knows them."""
        if act["who"] != who or not self.observers[who].get("centers") or act["act"] not in STATES:
            return act
        ends = [
            other["after"] + GRACE for other in acts
            if other["act"] in AGENTS and other["before"] < act["after"] and act["before"] < other["after"] + GRACE
        ]
        return act | {"after": max([act["after"], *ends])}

    def judge_observer(self, who, records, heard, posts, acts):
        acts = [self.lengthened(who, act, acts) for act in acts]
        segments, troubles = self.segments(who, acts), self.troubles(who, acts)
        begins = [segment.begin for segment in segments]
        by_name, of_name = collections.defaultdict(list), collections.defaultdict(list)
        for post in posts:
            by_name[post.name].append(post)
        for record in heard:
            of_name[record.name].append(record.begin)

        registered = {name: [span] for name, span in self.live[who].items()}
        for record in records:
            if record.what == "R":
                if record.status != 0:
                    if not self.is_troubled(record, troubles):
                        yield Violation("a call without an answer", who, record.name, f"register: {record.status}", [record.begin])
                    continue
                registered.setdefault(record.name, []).append((record.begin, record.end, math.inf, math.inf))
            elif record.what == "C":
                spans = registered.get(record.name)
                if spans:
                    spans[-1] = (*spans[-1][:2], record.begin, record.end)
            elif record.what == "F" and record.status != 0:
                yield Violation("a child that uses the bus", who, "-", f"status {record.status}", [record.begin])
        judged = set()
        for pattern, spans in registered.items():
            names = [pattern]
            if pattern.endswith("*"):
                names = [name for name in {*by_name, *of_name} if name.startswith(pattern[:-1])]
            judged.update(names)
            for name in names:
                try:
                    self.judge_name(who, name, spans, by_name[name], of_name[name], segments, begins, troubles)
                except Violation as violation:
                    yield violation
        for name in [*of_name]:
            if name not in judged:
                yield Violation("never observed", who, name, "heard", of_name[name][:1])
        for act in acts:
            if act["act"] == "report":
                yield from self.judge_act(act, acts)
        yield from self.judge_order(who, posts, heard, segments, begins, troubles)
        self.live[who] = {
            name: (-math.inf, -math.inf, math.inf, math.inf) for name, spans in registered.items() if spans[-1][2] == math.inf
        }

    @staticmethod
    def is_troubled(what, troubles):
        # A stopped program may have been parked, which ends its connection.
        return any(
            trouble.row in ("lost-connection", "bus-away", "agent-died", "stopped")
            and trouble.begin < what.end and what.begin < trouble.end for trouble in troubles
        )

    def judge_name(self, who, name, spans, posts, heard, segments, begins, troubles):
        entries, needed, sure, resumed = [], [], [], {}
        for post in posts:
            self.counts["decisions"] += 1
            span = next((span for span in spans if span[0] <= post.end and post.begin <= span[3]), None)
            if span is None:
                continue
            first = max(0, bisect.bisect_right(begins, post.begin) - 1)
            last = max(first, bisect.bisect_right(begins, post.end) - 1)
            over = segments[first : last + 1]
            # Posts that are queued for a callback when it is canceled are not heard.
            must = span[1] <= post.begin and post.end + GRACE <= span[2]
            most, row = 0, None
            suspends = False
            for segment in over:
                states = {segment.before, segment.after} - {None}
                if states == {FOREGROUND}:
                    most = max(most, 1)
                elif states == {BACKGROUND}:
                    must = False
                elif states == {SUSPENDED}:
                    suspends = True
                else:
                    most = max(most, 1)
                    if BACKGROUND in states or UNKNOWN in states:
                        must = False
                        row = row or ("unknown" if UNKNOWN in states else "from-background" if segment.before == BACKGROUND else "into-background")
                    if SUSPENDED in states:
                        row = row or ("being-resumed" if segment.before == SUSPENDED else "being-suspended")
                    if SUSPENDED in states or UNKNOWN in states:
                        suspends = True
            # A change from suspended may be to the background, which forgets what waits.
            if span[2] < math.inf and (suspends or len(over) > 1):
                must = False
            # Posts that still wait for a program when it goes into the background are dropped, which may also be while
            # it is suspended.
            if must:
                until = [trouble.end for trouble in troubles if self.overlap(post, trouble)]
                if self.observers[who].get("relay"):
                    # So are those on their way through the relay.
                    until.append(post.end + JUST_BEFORE)
                if suspends:
                    index = last
                    while index < len(segments) - 1 and SUSPENDED in (segments[index].before, segments[index].after):
                        index += 1
                    until.append(segments[index].begin + GRACE)
                    # Posts that are kept for it are lost with the agent that keeps them, or with its own connection.
                    lost = any(
                        trouble.losing and trouble.row in ("agent-died", "lost-connection") and post.begin < trouble.end
                        and trouble.begin < until[-1] for trouble in troubles
                    )
                    must = not lost
            if must:
                closing = next(
                    (segment.begin for segment in segments[last:]
                     if segment.state is None and segment.after in (BACKGROUND, UNKNOWN)), math.inf
                )
                must = closing > max(until, default=-math.inf)
            stable = len(over) == 1 and over[0].state is not None
            if stable and must:
                self.counts["decided exactly"] += 1
            elif stable:
                self.counts["decided silent"] += 1
            extra, stopped = 0, False
            for trouble in troubles:
                if self.overlap(post, trouble):
                    if trouble.losing:
                        must = False
                        most = max(most, 1 if most or suspends or trouble.row == "bus-away" else 0)
                    if most or suspends:
                        extra = 1
                        row = row or trouble.row
                    stopped = stopped or trouble.row == "stopped"
            if suspends:
                # All that are posted while it is suspended are heard as one.
                index = last
                while index > 0 and SUSPENDED in (segments[index - 1].before, segments[index - 1].after):
                    index -= 1
                while last < len(segments) and segments[last].after != FOREGROUND and segments[last].after != UNKNOWN:
                    last += 1
                opens = segments[min(last, len(segments) - 1)].begin
                if most:
                    opens = min(opens, post.begin)
                opens = max(opens, post.begin)
                resumed[index] = min(resumed.get(index, math.inf), opens)
            if most + extra:
                entries.append(Entry(post.begin, most + extra, 0 if suspends else most, must, row))
            if must:
                needed.append(post)
                if stable and over[0].state == FOREGROUND and not extra:
                    sure.append(post)
        entries += [Entry(opens, 1, 1, True, "being-resumed") for opens in resumed.values()]
        for trouble in troubles:
            if trouble.spurious and (self.observers[who].get("relay") or self.may_be_spurious(trouble, segments, troubles)):
                entries.append(Entry(trouble.begin, 1, 0, False, trouble.row))
        self.excess(who, name, posts, heard, entries, segments, begins)
        self.lack(who, name, heard, needed, sure)

    @staticmethod
    def overlap(post, trouble):
        return trouble.begin < post.end and post.begin < trouble.end

    @staticmethod
    def may_be_spurious(trouble, segments, troubles):
        if trouble.row != "agent-died":
            return True
        # Only of a program that was suspended, parked or being resumed.
        for segment in segments:
            if segment.begin < trouble.end and trouble.begin < segment.end:
                if {segment.before, segment.after} & {SUSPENDED, UNKNOWN}:
                    return True
        return any(
            other.row == "stopped" and other.begin < trouble.end and trouble.begin < other.end for other in troubles
        )

    def excess(self, who, name, posts, heard, entries, segments, begins):
        """Nothing is heard more often than it may be: at no time more than the entries until then allow."""
        entries.sort(key=lambda entry: entry.begin)
        allowed, next_entry = 0, 0
        for count, time in enumerate(sorted(heard), 1):
            while next_entry < len(entries) and entries[next_entry].begin <= time:
                allowed += entries[next_entry].most
                next_entry += 1
            if count > allowed:
                before = [post for post in posts if post.begin <= time]
                segment = segments[max(0, bisect.bisect_right(begins, time) - 1)]
                if not before:
                    rule = "never posted"
                elif segment.state == BACKGROUND:
                    rule = "heard in the background"
                elif segment.state == SUSPENDED:
                    rule = "heard while suspended"
                elif count == 1:
                    rule = "heard although it was in the background"
                else:
                    rule = "heard twice"
                times = [time] if not before else [before[-1].begin, time]
                raise Violation(rule, who, name, f"heard {count} times, allowed {allowed}", times)
        self.count_rows(len(heard) - sum(entry.usual for entry in entries), entries)

    def count_rows(self, surplus, entries):
        """Which rows were needed to explain that more was heard than usual, or less."""
        for entry in entries:
            if surplus > 0 and entry.most > entry.usual and entry.row:
                used = min(surplus, entry.most - entry.usual)
                surplus -= used
            elif surplus < 0 and entry.usual and not entry.must and entry.row:
                used = min(-surplus, entry.usual)
                surplus += used
            else:
                continue
            self.rows[entry.row] += used
            self.counts["of unknown state"] += used * (entry.row == "unknown")

    @staticmethod
    def lack(who, name, heard, needed, sure):
        """Nothing is lost: for each post that must be heard there is something heard later, and one for each of those that
        are heard one by one."""
        heard = sorted(heard)
        for post in needed:
            if not heard or heard[-1] < post.begin:
                raise Violation("lost", who, name, "posted, and never heard", [post.begin, post.end])
        sure.sort(key=lambda post: -post.begin)
        for count, post in enumerate(sure, 1):
            if len(heard) - bisect.bisect_left(heard, post.begin) < count:
                raise Violation("lost", who, name, f"posted {count} times from here on, heard less often", [post.begin, post.end])

    def judge_order(self, who, posts, heard, segments, begins, troubles):
        """A program in the foreground throughout, with one connection, hears each other program's posts in order."""
        if self.observers[who].get("centers"):
            return
        by_name = {post.name: post for post in posts if post.name.startswith("c.u.")}
        latest, count = {}, collections.Counter(record.name for record in heard)
        for record in heard:
            post = by_name.get(record.name)
            if not post or count[record.name] > 1:
                continue
            first = max(0, bisect.bisect_right(begins, post.begin) - 1)
            last = max(0, bisect.bisect_right(begins, record.begin) - 1)
            if first != last or segments[first].state != FOREGROUND:
                continue
            if any(trouble.begin < record.begin and post.begin < trouble.end for trouble in troubles):
                continue
            before = latest.get(post.poster)
            if before and before.number > post.number and before.begin >= segments[first].begin:
                yield Violation("out of order", who, post.name, f"heard after {before.name}", [post.begin, record.begin])
                return
            latest[post.poster] = post
            self.counts["in order"] += 1

    # What is said

    def show(self, output, title, violations, posts, heard, acts):
        first = violations[0]
        print(f"\nVIOLATION: {first.rule}: {first.who}, {first.name}: {first}\n{title}", file=output)
        zero = next((act["before"] for act in acts if act["act"] == "round"), acts[0]["before"])
        begin, end = first.times[0] - 3 * SECOND, max(time for time in first.times if time < math.inf) + 2 * SECOND
        lines, events = [], []
        for act in acts:
            if act["who"] in (first.who, "world") and act["after"] > begin and act["before"] < end:
                said = f" {act['status']} {act.get('said', '')}" if act["status"] else ""
                events.append((act["before"], act["after"], f"{act['act']}{said}"))
        lines += [(post.begin, post.end, f"posted by {post.poster}") for post in posts if post.name == first.name]
        for who, records in heard.items():
            lines += [(r.begin, r.begin, f"heard by {who}") for r in records if r.name == first.name and who in (first.who, "untouched")]
        at = max(time for time in first.times if time < math.inf)
        lines = sorted(sorted(lines, key=lambda line: abs(line[0] - at))[:20] + events)
        for before, after, text in lines:
            end = f"{(after - zero) / SECOND:10.6f}" if after < math.inf else "         ?"
            print(f"  {(before - zero) / SECOND:10.6f} {end}  {text}", file=output)
        rules = collections.Counter(f"{violation.rule} ({violation.who})" for violation in violations)
        print("In this round: " + ", ".join(f"{count} {rule}" for rule, count in rules.most_common()), file=output)

    def summary(self, output):
        counts = self.counts + self.states.counts
        print(", ".join(f"{count} {what}" for what, count in counts.most_common()), file=output)
        for row, text in ROWS.items():
            print(f"  {self.rows[row]:6} {text}", file=output)
        print(f"  the bus took at most {self.memory >> 20} MB", file=output)
