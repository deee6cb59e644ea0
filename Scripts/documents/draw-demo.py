#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws acts of the demo as an SVG picture of a terminal, for light and dark pages:

    Scripts/documents/demo | Scripts/documents/draw-demo.py TITLE... >Documentation/demo.svg

Each TITLE is what an act of the demo is called, without its number. The lines are those that the demo printed; lines
that do not fit are an error.
"""

import re
import sys
from xml.sax.saxutils import escape

COLUMNS, SIZE, LEADING, MARGIN = 78, 14, 20, 20
ADVANCE = SIZE * 0.6


def acts(text):
    """The lines of each act that belong to its terminals, by its title."""
    found, title = {}, None
    for line in text.splitlines():
        if heading := re.fullmatch(r"\d+\. (.+)", line):
            title = heading[1]
            found[title] = []
        elif title and (typed := re.fullmatch(r"  (\w+) +(.*)", line)) and line[2:10].strip() == typed[1]:
            found[title].append((typed[1], line[11:]))
    return found


def draw(wanted, found):
    rows = []
    for title in wanted:
        if not found.get(title):
            raise SystemExit(f"The demo has no act '{title}'; it has: {', '.join(found)}.")
        rows += [("", "", None)] if rows else []
        rows += [("heading", title, None)]
        for who, line in found[title]:
            if len(line) + 9 > COLUMNS:
                raise SystemExit(f"A line of '{title}' is wider than the picture: {line}")
            rows += [("typed" if line[:2] in ("$ ", "> ") else "printed", line, who)]
    width, height = MARGIN * 2 + round(COLUMNS * ADVANCE), MARGIN * 2 + LEADING * len(rows)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    yield f"<title>{escape('; '.join(wanted))}</title>"
    yield """<style>
  rect { fill: #f6f8fa; stroke: #d0d7de }
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #57606a }
  .heading { fill: #0969da; font-weight: bold }
  .typed { fill: #1f2328; font-weight: bold }
  .printed { fill: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    rect { fill: #0d1117; stroke: #30363d }
    text { fill: #8b949e }
    .heading { fill: #58a6ff }
    .typed { fill: #e6edf3 }
    .printed { fill: #56d364 }
  }
</style>"""
    yield f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    for number, (kind, line, who) in enumerate(rows):
        y = MARGIN + LEADING * number + SIZE
        if who:
            yield f'<text x="{MARGIN}" y="{y}">{escape(who)}</text>'
        if kind:
            x = MARGIN + (round(9 * ADVANCE) if who else 0)
            yield f'<text x="{x}" y="{y}" class="{kind}">{escape(line)}</text>'
    yield "</svg>"


if __name__ == "__main__":
    print("\n".join(draw(sys.argv[1:], acts(sys.stdin.read()))))
