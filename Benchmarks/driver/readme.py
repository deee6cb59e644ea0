# SPDX-License-Identifier: Apache-2.0
"""The tables in the documents, which are made from results.json.

Between '<!-- table: WHAT -->' and '<!-- end -->' is a table: 'everyday', what a person can notice; 'goals'; 'leads',
where others are ahead; or 'KEY = HEADING; …', rows side by side. Between '<!-- text: speed -->' and '<!-- end -->' is a
sentence.
"""

import json
import re

from .context import HERE
from .figures import BARE, OURS
from .report import number

DOCUMENTS = [HERE / "README.md", HERE.parent / "README.md", HERE.parent / "Documentation" / "across-machines.md"]
DAEMONS = ["dbus-daemon", "dbus-broker"]
MARK = re.compile(r"(<!-- (table|text): ([^>]*?) -->\n?)(.*?)(<!-- end -->)", re.DOTALL)
# How far ahead counts as a lead, since times vary.
LEAD = 1.05
# What the first table says: a task, the key of its row, what of it is ours, and what people use instead.
EVERYDAY = [
    ("wait, post once live, hear it, end", "wait-then", "notify-wait --then", "dbus-monitor and dbus-send"),
    ("post from a shell", "post-command", "notify-post", "dbus-send"),
    ("each of many posts from a shell", "post-many", "notify-post -", "dbus-send"),
    ("memory of a command that waits", "idle-memory", "notify-wait -f", "dbus-monitor"),
    ("see a commit in SQLite", "commit", OURS, "polling each ms"),
    ("wake-ups until then", "commit-wakeups", OURS, "polling each ms"),
    ("post to callback", "latency", OURS, "libdbus"),
    ("posts to each of 10 observers", "throughput-10", OURS, "libdbus"),
    ("posts of ten names until 10 observers are up to date", "storm-10", OURS, "libdbus"),
    ("bus memory while a subscriber reads nothing", "stalled", "NotifyBus, stopped", "libdbus, not reading"),
    ("processor time of 1,000 programs for a post", "system", OURS, "libdbus"),
]


def fill():
    """Writes the tables; the exit status."""
    results = json.loads((HERE / "results.json").read_text())
    for document in DOCUMENTS:
        document.write_text(filled(document, results))
    return 0


def differences():
    """What the documents say that results.json doesn't."""
    results = json.loads((HERE / "results.json").read_text())
    return [
        f"{document.relative_to(HERE.parent)} is not what 'Benchmarks/bench --readme' makes of results.json"
        for document in DOCUMENTS
        if document.read_text() != filled(document, results)
    ]


def filled(document, results):
    """The text of a document with its tables."""

    def replace(match):
        opening, kind, what, _, ending = match.groups()
        if kind == "text":
            return opening + speed(results) + ending
        tables = {"everyday": everyday, "goals": goals, "leads": leads}
        lines = tables.get(what, lambda results: side_by_side(results, what))(results)
        return opening + "".join(f"{line}\n" for line in lines) + ending

    return MARK.sub(replace, document.read_text())


def rows_of(results, key):
    """The row of each daemon, if it was measured there."""
    return [next((row for row in results["rows"] if (row["key"], row["daemon"]) == (key, it)), None) for it in DAEMONS]


def figure(row, label, field="median"):
    """A figure of a row; None if there is none."""
    return next((one.get(field) for one in row["figures"] if one["what"] == label), None) if row else None


def cells(values):
    """The figures of the two daemons, with a dash where there is none."""
    return ", ".join("–" if value is None else number(value) for value in values)


def everyday(results):
    """What a person can notice, with NotifyBus and with what people use instead."""
    yield "| | NotifyBus | instead |"
    yield "|---|---|---|"
    for task, key, ours, other in EVERYDAY:
        rows = rows_of(results, key)
        unit = next((row["unit"] for row in rows if row), "")
        us, them = (f"{cells([figure(row, label) for row in rows])} {unit}" for label in (ours, other))
        yield f"| {task} | {us} | {other}: {them} |"


def goals(results):
    """Each goal and what was measured; in bold if it was missed."""
    yield "| | goal | dbus-daemon | dbus-broker |"
    yield "|---|---|---|---|"
    for goal in results["goals"]:
        measured = {one["daemon"]: one for one in goal["measured"]}
        values = [measured.get(daemon) for daemon in DAEMONS]
        yield f"| {goal['goal']} | {goal['limit']} | {' | '.join(map(verdict, values))} |"


def verdict(measured):
    """What was measured for a goal, as a cell."""
    if not measured:
        return ""
    return number(measured["value"]) if measured["met"] else f"**{number(measured['value'])}**"


def side_by_side(results, what):
    """Rows with the same labels, a column for each; in a cell the medians on dbus-daemon and dbus-broker."""
    columns = [[word.strip() for word in column.split("=")] for column in what.split(";")]
    rows = {key: rows_of(results, key) for key, _ in columns}
    labels = dict.fromkeys(one["what"] for pair in rows.values() for row in pair if row for one in row["figures"])
    units = [next((row["unit"] for row in rows[key] if row), "") for key, _ in columns]
    heads = [f"{heading}, {unit}" if unit else heading for (_, heading), unit in zip(columns, units, strict=True)]
    yield f"| | {' | '.join(heads)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for label in labels:
        values = [cells([figure(row, label) for row in rows[key]]) for key, _ in columns]
        yield f"| {label} | {' | '.join(values)} |"


def leads(results):
    """What others do better, and how many times, on each daemon. The floor is no alternative; the tails vary too much."""
    yield "| | who leads, and how many times |"
    yield "|---|---|"
    found = {}
    for row in results["rows"]:
        if row["ratio"] != "reference / each" or row["key"].startswith("idle") or row["key"].endswith("p99"):
            continue
        for one in row["figures"]:
            ratio = one.get("ratio")
            is_ours = one["what"].startswith(("NotifyBus", "notify", "the commit")) or "bridge" in one["what"]
            if not ratio or is_ours or one["what"] == BARE:
                continue
            times = 1 / ratio if row["more_is_better"] else ratio
            if times > LEAD:
                found.setdefault(row["title"], {}).setdefault(one["what"], {})[row["daemon"]] = times
    for title, leaders in found.items():
        words = (f"{label} {cells([times.get(it) for it in DAEMONS])}" for label, times in leaders.items())
        yield f"| {title} | {'; '.join(words)} |"


def speed(results):
    """The sentence of the first page."""
    floor, libdbus = (
        [value for row in rows_of(results, "latency") if (value := figure(row, label, "ratio"))]
        for label in (BARE, "libdbus")
    )

    def span(values):
        low, high = (f"{value:.2f}" for value in (min(values), max(values)))
        return low if low == high else f"{low} to {high}"

    return (
        f"From post to callback takes {span(floor)} times as long as with no library at all,\n"
        f"and {span(libdbus)} of libdbus's time.\n"
    )
