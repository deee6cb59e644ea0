# SPDX-License-Identifier: Apache-2.0
"""The chart: a panel for each thing that matters, a bar for each way of doing it. Colours for light and dark pages."""

from statistics import median
from xml.sax.saxutils import escape

from .report import number

# Key of the row, heading, labels to show; None shows all.
ON_BUS = ["NotifyBus", "libdbus", "sd-bus", "GDBus"]
PANELS = [
    ("latency", "Post to callback", None),
    ("throughput-10", "Posts to each of 10 observers", ON_BUS),
    ("storm-10", "Storm of 10 names to 10 observers", None),
    ("scale", "A post, 40,000 other names observed", None),
    ("system", "Processor time for a post, 1,000 programs", None),
    ("states-memory", "Bus memory for a million posts", ["background", "suspended", "libdbus, stopped process"]),
    ("many-latency", "Post to one of 10,000 observers", ON_BUS),
    ("post-command", "A command that posts", None),
    ("wait-memory", "Peak memory of a command that waits", None),
    ("commit", "A commit until another process has seen it", None),
]
WIDTH, COLUMNS, MARGIN, LINE, LABELS, VALUES = 1000, 2, 24, 20, 200, 84
TEXT, OURS_COLOUR, BAR = "#7d8590", "#2f81f7", "#8b949e"
# The ones with highlighted bars.
OURS = ("NotifyBus", "notify-", "background", "suspended")


def panels(rows):
    """Heading, unit, whether more is better, and bars: label and median."""
    by_key = {row.key: row for row in reversed(rows)}
    for key, heading, labels in PANELS:
        if key == "scale":
            found = [by_key.get(f"scale-{who}") for who in ("notifybus", "libdbus")]
            if not all(row and "40,000 names" in row.figures for row in found):
                continue
            bars = [("NotifyBus", median(found[0].figures["40,000 names"]))]
            bars.append(("libdbus, arg0 rules", median(found[1].figures["40,000 names"])))
            row = found[0]
        elif row := by_key.get(key):
            bars = [(who, median(all)) for who, all in row.figures.items() if labels is None or who in labels]
        if row and bars:
            yield heading, row.unit, row.more_is_better, bars


def draw(rows, machine):
    """The chart as the text of an SVG file."""
    column_width = (WIDTH - MARGIN * (COLUMNS + 1)) // COLUMNS
    heights = [MARGIN + 28] * COLUMNS
    parts = []
    for heading, unit, more, bars in panels(rows):
        column = heights.index(min(heights))
        x, y = MARGIN + column * (column_width + MARGIN), heights[column]
        parts.append(panel(x, y, column_width, heading, unit, more, bars))
        heights[column] = y + (len(bars) + 1) * LINE + MARGIN
    height = max(heights) + LINE
    daemon = rows[0].daemon if rows else ""
    title = f"NotifyBus and what people use instead, on {daemon} {machine['versions'].get(daemon, '')}"
    foot = f"Medians of one run; {machine['cores']} cores, {machine['processor']}"
    style = f"text {{ font: 13px system-ui, sans-serif; fill: {TEXT} }} .head, .ours {{ font-weight: 600 }}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
            text(MARGIN, MARGIN, title, "head"),
            *parts,
            text(MARGIN, height - 10, foot),
            "</svg>",
            "",
        ]
    )


def panel(x, y, width, heading, unit, more, bars):
    """One panel."""
    better = f"{unit}, more is better" if more else f"{unit}, less is better" if unit else "less is better"
    lines = [text(x, y, heading, "head"), text(x + width, y, better, end=True)]
    longest = max(value for _, value in bars) or 1
    room = width - LABELS - VALUES
    for index, (label, value) in enumerate(bars):
        baseline = y + (index + 1) * LINE
        is_ours = label.startswith(OURS)
        length = max(1.5, value / longest * room)
        lines.append(text(x + LABELS - 8, baseline, label, "ours" if is_ours else "", end=True))
        colour = OURS_COLOUR if is_ours else BAR
        lines.append(
            f'<rect x="{x + LABELS}" y="{baseline - 11}" width="{length:.1f}" height="13" rx="2" fill="{colour}"/>'
        )
        lines.append(text(round(x + LABELS + length + 6), baseline, number(value), "ours" if is_ours else ""))
    return "\n".join(lines)


def text(x, y, words, kind="", end=False):
    """Some words."""
    kind = f' class="{kind}"' if kind else ""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x}" y="{y}"{kind}{anchor}>{escape(words)}</text>'
