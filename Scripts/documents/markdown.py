#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes documents in Markdown of manual pages, for people who read them where the sources are:

    Scripts/documents/markdown.py FOLDER PAGE...

FOLDER gets PAGE.md for each. This knows the macros of man(7) that our pages use; any other is an error. Bold text in a
page is what one types, so it becomes code.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = {path.name.removesuffix(".in") for path in (ROOT / "man").iterdir()}
CHARACTERS = {"-": "-", "&": "", "e": "\\", " ": " ", "(aq": "'", "(ti": "~", "(ha": "^", "(lq": "“", "(rq": "”"}


def characters(text):
    """A text in which escapes are the characters that they stand for. Fonts remain."""
    return re.sub(
        r"\\(\[u[0-9A-F]+\]|\(..|[^f])",
        lambda match: chr(int(match[1][2:-1], 16)) if match[1][0] == "[" else CHARACTERS[match[1]],
        text,
    )


def parts(fonts, texts):
    """Pairs of a font and a text, for texts in fonts that take turns, and may change the font themselves."""
    for number, text in enumerate(texts):
        own = fonts[number % len(fonts)]
        font = own
        for piece in re.split(r"(\\f[BIRP])", text):
            if piece[:2] == "\\f":
                font = own if piece[2] == "P" else piece[2]
            elif piece:
                yield font, characters(piece)


def of_line(line):
    """The same for a line, which may be a macro for fonts."""
    if not line.startswith("."):
        return list(parts("R", [line]))
    macro, _, rest = line[1:].partition(" ")
    if macro not in ("B", "I", "BR", "BI", "RB", "RI", "IR", "IB"):
        raise ValueError(f"unknown macro: {line}")
    texts = [quoted or word for quoted, word in re.findall(r'"([^"]*)"|(\S+)', rest)]
    return list(parts(macro, texts if len(macro) == 2 else [" ".join(texts)]))


def markdown(pairs):
    """A line of Markdown."""
    runs = []
    for font, text in pairs:
        if runs and runs[-1][0] == font:
            runs[-1][1] += text
        else:
            runs.append([font, text])
    line = ""
    for font, text in runs:
        core = text.strip(" ")
        before, after = re.match(r"( *).*?( *)$", text).groups() if core else (text, "")
        plain = re.sub(r"([\\`*_<>\[\]|~])", r"\\\1", core)
        if font == "B" and core:
            plain = f"`{core}`"
        elif font == "I" and core:
            # An asterisk beside punctuation may be one.
            plain = f"*{plain}*" if re.fullmatch(r"\w(.*\w)?", core) else f"<i>{plain}</i>"
        line += before + plain + after
    return re.sub(
        r"`([a-z-]+)`\((\d)\)",
        lambda match: f"[{match[1]}({match[2]})]({match[1]}.{match[2]}.md)" if f"{match[1]}.{match[2]}" in PAGES else match[0],
        line,
    )


class Document:
    def __init__(self, page):
        self.blocks = []
        self.lines, self.tags = [], []
        self.base, self.in_item, self.outer = "", False, []
        self.wants_tag = False
        self.literal = None
        for line in page.read_text().splitlines():
            self.take(line)
        self.end_paragraph()

    def text(self):
        return "\n\n".join(self.blocks) + "\n"

    def take(self, line):
        macro, _, rest = line.partition(" ")
        if self.literal is not None and macro not in (".EE", ".fi", ".TE"):
            self.literal.append(line)
        elif macro in ('.\\"', "'\\\"", ".nr", ".nh", ".in"):
            pass
        elif macro == ".TH":
            name, section = rest.split()[:2]
            self.add(f"# {characters(name).lower()}({section})")
        elif macro in (".SH", ".SS"):
            self.end_item()
            self.add(("## " if macro == ".SH" else "### ") + markdown(parts("R", [rest.strip('"')])))
        elif macro == ".PP":
            self.end_item()
        elif macro == ".IP" and not rest:
            self.end_paragraph()
        elif macro == ".TP":
            self.end_item()
            self.wants_tag = self.in_item = True
        elif macro == ".TQ":
            self.wants_tag = True
        elif macro == ".br":
            self.lines[-1] += "\\"
        elif macro == ".RS":
            self.end_paragraph()
            self.outer.append((self.base, self.in_item))
            self.base, self.in_item = self.indent(), False
        elif macro == ".RE":
            self.end_paragraph()
            self.base, self.in_item = self.outer.pop()
        elif macro in (".EX", ".nf", ".TS"):
            self.end_paragraph()
            self.literal = []
        elif macro in (".EE", ".fi"):
            self.add("\n".join(["```", *map(self.unformatted, self.literal), "```"]))
            self.literal = None
        elif macro == ".TE":
            rows = [" | ".join(markdown(of_line(cell)) for cell in row.split("\t")) for row in self.literal[1:]]
            self.add("\n".join(["| | |", "|---|---|", *(f"| {row} |" for row in rows)]))
            self.literal = None
        elif self.wants_tag:
            self.tags.append(markdown(of_line(line)))
            self.wants_tag = False
        else:
            # Here, what would begin a list, a heading or a quotation in Markdown is only a word.
            self.lines.append(re.sub(r"^(\d*)([-+#=.)])", r"\1\\\2", markdown(of_line(line))))

    def unformatted(self, line):
        return "" if line == ".PP" else "".join(text for _, text in of_line(line))

    def indent(self):
        return self.base + ("  " if self.in_item else "")

    def add(self, block, first=None):
        indent = self.indent()
        lines = [indent + line if line else "" for line in block.split("\n")]
        if first is not None:
            lines[0] = first + lines[0][len(indent) :]
        self.blocks.append("\n".join(lines))

    def end_paragraph(self):
        lines = self.lines
        if self.tags:
            lines = ["\\\n".join(self.tags + lines[:1])] + lines[1:]
        if lines:
            self.add("\n".join(lines), self.base + "- " if self.tags else None)
        self.lines, self.tags = [], []

    def end_item(self):
        self.end_paragraph()
        self.in_item = False


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in map(pathlib.Path, sys.argv[2:]):
        note = "<!-- Made by 'make manuals' of a page in /man, with what the commands say about themselves: edit that. -->"
        (folder / f"{page.name}.md").write_text(f"{note}\n\n{Document(page).text()}")


main()
