# SPDX-License-Identifier: Apache-2.0
"""Runs the parts that were asked for, and reports."""

import argparse
import json
import shutil
import signal
import sys
import time

from . import (
    bridges,
    calls,
    chart,
    commands,
    commit,
    events,
    goals,
    growth,
    idle,
    instructions,
    latency,
    machine,
    readme,
    registering,
    report,
    rules,
    sandbox,
    scale,
    stalled,
    states,
    system,
    throughput,
)
from .context import HERE, Context
from .programs import Missing

# Each part, and the keys of its rows.
PARTS = {
    "latency": (latency.measure, "latency latency-p99"),
    "throughput": (throughput.measure, "throughput-1 throughput-10 throughput-100"),
    "storm": (throughput.measure_storm, "storm-1 storm-10"),
    "growth": (growth.measure, "growth"),
    "scale": (scale.measure, "scale-notifybus scale-libdbus"),
    "rules": (rules.measure, "rules-notifybus rules-bare rules-own"),
    "stalled": (stalled.measure, "stalled stalled-cut"),
    "states": (states.measure, "states states-memory"),
    "sandbox": (sandbox.measure, "sandbox"),
    "observers": (registering.measure, "add cancel many-setup many-memory many-latency"),
    "system": (system.measure, "system"),
    "event": (events.measure, "event"),
    "commit": (commit.measure, "commit commit-p99 commit-wakeups"),
    "bridges": (bridges.measure, "bridges-latency bridges-throughput bridges-all bridges-memory"),
    "calls": (calls.measure, "calls"),
    "commands": (commands.measure, "post-command post-memory post-many wait-start wait-memory wait-then"),
    "idle": (idle.measure, "idle-wakeups idle-memory agent-memory"),
    "instructions": (instructions.measure, "instructions-post instructions-delivery instructions-both"),
}


def main():
    """The program."""
    parser = argparse.ArgumentParser(prog="bench", description="Measures NotifyBus against what people use instead.")
    parser.add_argument("--check", action="store_true", help="do a little of everything, on one daemon, and check it")
    parser.add_argument("--commands", default=HERE.parent / ".build" / "release", help="where the commands are")
    parser.add_argument("--bridges", type=int, metavar="N", help="how many bridges share a broker: 20 if not given")
    parser.add_argument("--readme", action="store_true", help="only fill the tables of the documents from results.json")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which of {', '.join(PARTS)}; all if none is named")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if options.readme:
        return readme.fill()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    parts = options.parts or list(PARTS)
    about = machine.describe()
    context = Context(options.commands, options.check, options.bridges or (3 if options.check else 20))
    try:
        began = time.monotonic()
        run(context, parts)
        about["seconds"] = round(time.monotonic() - began)
    finally:
        context.close()
        shutil.rmtree(context.folder, ignore_errors=True)
    is_whole = set(parts) == set(PARTS)
    lines = report.table(context.rows)
    if not options.check:
        lines += report.goal_table(context.rows, is_whole)
    print("\n".join(lines + machine.lines(about)))
    save(context, about, is_whole)
    return check(context, parts) if options.check else 0


def run(context, parts):
    """Takes the measurements, part by part. What can't be measured does not stop the rest."""
    context.start_servers()
    servers = len(context.kept)
    for part in parts:
        measure, _ = PARTS[part]
        for daemon in context.daemons:
            began = time.monotonic()
            try:
                measure(context, daemon)
            except Missing as reason:
                context.failures.append(f"{part} on {daemon}: {reason}")
            context.close(keep=servers)
            print(f"{part}, {daemon}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    for failure in context.failures:
        print(failure, file=sys.stderr)


def save(context, about, is_whole):
    """Writes results.json and chart.svg. Parts of a run go where they replace no whole one."""
    folder = HERE if is_whole and not context.is_check else HERE / ".build"
    results = {
        "machine": about,
        "goals": goals.as_json(context.rows),
        "rows": [row.as_json() for row in context.rows],
        "failures": context.failures,
    }
    (folder / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    first = [row for row in context.rows if row.daemon == context.daemons[0]]
    (folder / "chart.svg").write_text(chart.draw(first, about))
    print(f"\nWritten to {folder.relative_to(HERE.parent)}: results.json, chart.svg")


def check(context, parts):
    """Sees that every row is there, and in it everybody, and the goals that depend on no speed; the exit status."""
    results = json.loads((HERE / ".build" / "results.json").read_text())
    rows = {row["key"]: row for row in results["rows"]}
    wrong = list(results["failures"]) + readme.differences()
    for key in (key for part in parts for key in PARTS[part][1].split()):
        if reason := context.excused.get(key):
            print(f"bench: {key} is left out: {reason}", file=sys.stderr)
        elif key not in rows:
            wrong.append(f"there is no row {key!r}")
        elif rows[key]["missing"] or len(rows[key]["figures"]) < 2:
            wrong.append(f"{key}: {rows[key]['missing'] or 'too few figures'}")
    wrong += goals.missed(context.rows)
    for line in wrong:
        print(f"bench: {line}", file=sys.stderr)
    print("The benchmark does not work." if wrong else f"The benchmark works: {len(rows)} rows.")
    return 1 if wrong else 0
