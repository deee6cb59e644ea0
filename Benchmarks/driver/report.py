# SPDX-License-Identifier: Apache-2.0
"""The table that people read."""

from statistics import median

from . import goals
from .figures import spread


def number(value):
    """A number with three digits that count."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def between(samples):
    """The quartiles, in brackets."""
    return f"({number(spread(samples)[0])}–{number(spread(samples)[1])})" if len(samples) > 1 else ""


def table(rows):
    """The table, as lines: the median of all rounds, and of the ratios of all rounds."""
    lines = []
    for row in rows:
        ratio = f"it / {row.reference}" if row.is_baseline else f"{row.reference} / it"
        unit = f" [{row.unit}]" if row.unit else ""
        lines += ["", f"{row.title}{unit}, {row.daemon}"]
        lines.append(f"  {'':34}{'median':>12} {'(quartiles)':<22}{ratio:>22}  (quartiles)")
        for label, samples in row.figures.items():
            line = f"  {label:34}{number(median(samples)):>12} {between(samples):<22}"
            if (one := row.ratio(label)) is not None:
                line += f"{number(one):>22}  {between(row.ratios(label))}"
            lines.append(line.rstrip())
        lines += [f"  {label:34}     missing: {reason}" for label, reason in row.missing.items()]
        if row.note:
            lines.append(f"  {row.note}")
    return lines


def goal_table(rows, is_whole):
    """The goals, as lines; those of other parts only after a whole run."""
    lines = ["", f"{'To reach':60}{'goal':>8}    measured (quartiles)"]
    for goal, judged in goals.verdicts(rows):
        limit = f"{'≥' if goal.at_least else '≤'} {goal.limit:g}"
        if not judged and is_whole:
            lines.append(f"{goal.title:60}{limit:>8}    not measured")
        for daemon, value, quartiles, met in judged:
            span = f"({number(quartiles[0])}–{number(quartiles[1])})"
            verdict = "met" if met else "not met"
            lines.append(f"{goal.title:60}{limit:>8}    {number(value):>6} {span:16} {daemon:12} {verdict}")
    return lines
