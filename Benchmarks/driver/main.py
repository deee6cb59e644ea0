# SPDX-License-Identifier: Apache-2.0
"""Runs the parts that were asked for, and reports."""

import argparse
import json
import shutil
import sys
import time

from . import latency, registering, report, scale, throughput
from .context import HERE, Context
from .programs import Missing

PARTS = {
    "latency": latency.measure,
    "throughput": throughput.measure,
    "storm": throughput.measure_storm,
    "scale": scale.measure,
    "states": scale.measure_states,
    "observers": registering.measure,
}


def main():
    """The program."""
    parser = argparse.ArgumentParser(prog="bench", description="Measures NotifyBus against what people use instead.")
    parser.add_argument("--check", action="store_true", help="do little of everything, on one daemon, and check it")
    parser.add_argument("--commands", default=HERE.parent / ".build" / "release", help="where the commands are")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which of {', '.join(PARTS)}; all if none is named")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    context = Context(options.commands, options.check)
    try:
        run(context, options.parts or list(PARTS))
    finally:
        context.close()
        shutil.rmtree(context.folder, ignore_errors=True)
    print("\n".join(report.table(context.rows)))
    (HERE / "results.json").write_text(json.dumps([row.as_json() for row in context.rows], indent=1, ensure_ascii=False))
    return 0


def run(context, parts):
    """Takes the measurements, part by part."""
    context.start_servers()
    servers = len(context.kept)
    for part in parts:
        for daemon in context.daemons:
            began = time.monotonic()
            try:
                PARTS[part](context, daemon)
            except Missing as reason:
                print(f"{part} on {daemon}: {reason}", file=sys.stderr)
            context.close(keep=servers)
            print(f"{part} on {daemon}: {time.monotonic() - began:.1f} s", file=sys.stderr)
