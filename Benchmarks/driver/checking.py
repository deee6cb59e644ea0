# SPDX-License-Identifier: Apache-2.0
"""What it costs to ask whether a name was posted: notify_check() of our library for C."""

import subprocess

from .programs import PATIENCE, Missing, limit_life

LABELS = ["notify_check", "clock_gettime", "a system call"]


def measure(context, daemon):
    """Asks in one program, over and over, and does two other things in the same program for comparison."""
    if daemon != "dbus-daemon":
        return
    row = context.row("check", "To ask whether a name was posted", "ns", daemon, reference="notify_check")
    row.note = "In one process, without a bus: clock_gettime() takes no system call either; the system call is getppid()."
    try:
        context.check_installed(context.notify)
        for _ in range(context.count(9, 1)):
            count = context.count(5_000_000, 1000)
            result = subprocess.run(
                limit_life([*context.notify.command, "check", count]),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            if result.returncode != 0:
                raise Missing(result.stderr.strip())
            for label, figure in zip(LABELS, result.stdout.split(), strict=True):
                row.add(label, float(figure))
    except Missing as reason:
        row.lack("notify_check", reason)
