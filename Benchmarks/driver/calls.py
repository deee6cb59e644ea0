# SPDX-License-Identifier: Apache-2.0
"""What each function of notify(3) costs: those that Apple's notifybench times, in its order, with our library for C."""

import os
import subprocess

from .programs import PATIENCE, Missing, limit_life
from .states import start_agent

SYSTEM_CALL = "a system call"


def measure(context, daemon):
    """Calls each function for 50 names at a time, in one program; the floor is a system call."""
    title = "Functions of notify(3), as notifybench times them"
    row = context.row("calls", title, "ns", daemon, reference=SYSTEM_CALL, is_baseline=True)
    row.note = "One program, 50 names at a time. The name is observed when it is posted; the system call is getppid()."
    bus = context.bus(daemon)
    # Which keeps the states.
    start_agent(context, bus)
    try:
        context.check_installed(context.notify)
        for _ in range(context.count(9, 1)):
            result = subprocess.run(
                limit_life([*context.notify.command, "calls", bus.address, context.count(20, 2)]),
                env=os.environ | {"NOTIFYBUS_ADDRESS": bus.address},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            if result.returncode != 0:
                raise Missing(result.stderr.strip())
            for line in result.stdout.splitlines():
                label, figure = line.split("\t")
                row.add(label, float(figure))
    except Missing as reason:
        row.lack(SYSTEM_CALL, reason)
