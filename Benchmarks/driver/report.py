# SPDX-License-Identifier: Apache-2.0
"""The table that people read, and the goals."""

from statistics import median

from .figures import spread


def number(value):
    """A number with three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def between(samples):
    """The quartiles, in brackets."""
    return f"({number(spread(samples)[0])}–{number(spread(samples)[1])})" if len(samples) > 1 else ""


def table(rows):
    """The table, as lines."""
    lines = []
    for row in rows:
        ratio = "against it" if row.is_baseline else f"{row.reference} / it"
        lines += ["", f"{row.title} [{row.unit}], {row.daemon}"]
        lines.append(f"  {'':34}{'median':>12} {'(quartiles)':<22}{ratio:>16}  (quartiles)")
        for label, samples in row.figures.items():
            line = f"  {label:34}{number(median(samples)):>12} {between(samples):<22}"
            if (one := row.ratio(label)) is not None:
                line += f"{number(one):>16}  {between(row.ratios(label))}"
            lines.append(line.rstrip())
        lines += [f"  {label:34}     missing: {reason}" for label, reason in row.missing.items()]
        if row.note:
            lines.append(f"  {row.note}")
    return lines
