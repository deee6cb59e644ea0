#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes web pages of the documents in Markdown, for the site that 'make docs' makes:

    Scripts/documents/pages.py SITE

Links between documents lead to the pages; links to manual pages and to the articles of the reference lead to those, which
must be in SITE/man and SITE/documentation already; other files are copied. A link to something that doesn't exist is an
error.
"""

import html
import pathlib
import re
import shutil
import sys

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ARTICLES = "Sources/Library/NotifyBus/NotifyBus.docc/"
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - NotifyBus</title>
<link rel="stylesheet" href="../style.css">
<p class="back"><a href="../index.html">NotifyBus</a></p>
{body}
</html>
"""


def documents():
    """The path of each document below the package, and what its page is called."""
    pages = {path: path.stem for path in sorted((ROOT / "Documentation").glob("*.md"))}
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        pages[ROOT / name] = name.removesuffix(".md").lower()
    pages[ROOT / "Benchmarks/README.md"] = "benchmarks"
    pages[ROOT / "Bindings/README.md"] = "bindings"
    return {str(path.relative_to(ROOT)): name + ".html" for path, name in pages.items()}


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.pages = documents()
        self.wrong = []

    def target(self, document, link):
        """Where a link of a document leads on the site."""
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            return link
        link, _, anchor = link.partition("#")
        path = ((ROOT / document).parent / link).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            self.wrong.append(f"{document}: {link} doesn't exist")
            return link
        name = str(path.relative_to(ROOT))
        if name in self.pages:
            place = self.pages[name]
        elif name == "Documentation/man":
            place = "../index.html"
        elif name.startswith("Documentation/man/"):
            place = f"../man/{path.stem}.html"
        elif name.startswith(ARTICLES):
            place = f"../documentation/notifybus/{path.stem.lower()}/"
        else:
            place = f"../files/{name}"
            copy = self.folder / "files" / name
            if path.is_dir():
                shutil.copytree(path, copy, dirs_exist_ok=True)
                self.index(copy, name)
            else:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
        if not place.startswith("../files") and place not in self.pages.values():
            if not (self.folder / "pages" / place).exists():
                self.wrong.append(f"{document}: there is no page for {name}")
        return place + (f"#{anchor}" if anchor else "")

    def index(self, folder, name):
        """A page that lists the files of a folder."""
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        items = "".join(f'<li><a href="{html.escape(one)}">{html.escape(one)}</a>\n' for one in files if one != "index.html")
        depth = "../" * (len(name.split("/")) + 1)
        page = PAGE.format(title=html.escape(name), body=f"<h1>{html.escape(name)}</h1>\n<ul>\n{items}</ul>")
        (folder / "index.html").write_text(page.replace('"../', f'"{depth}'))

    def write(self, document):
        text = (ROOT / document).read_text()
        body = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=4).render(text)
        body = re.sub(
            r'(href|src)="([^"]+)"',
            lambda match: f'{match[1]}="{html.escape(self.target(document, html.unescape(match[2])))}"',
            body,
        )
        # A wide table scrolls by itself.
        body = body.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
        title = re.search(r"^# (.*)", text, re.MULTILINE)[1].replace("`", "")
        page = self.folder / "pages" / self.pages[document]
        page.write_text(PAGE.format(title=html.escape(title), body=body))
        return set(re.findall(r' id="([^"]+)"', body)), re.findall(r'href="([^"]*)#([^"]+)"', body)


def main():
    site = Site(pathlib.Path(sys.argv[1]).resolve())
    (site.folder / "pages").mkdir(exist_ok=True)
    pages = {site.pages[document]: (document, *site.write(document)) for document in site.pages}
    for name, (document, _, links) in pages.items():
        for page, anchor in links:
            known = pages.get(page or name)
            if known and anchor not in known[1]:
                site.wrong.append(f"{document}: {page} has no heading '{anchor}'")
    # The README's first table is on the front page, too.
    front = site.folder / "index.html"
    table = re.search(r'<div class="table">.*?</div>', (site.folder / "pages/readme.html").read_text(), re.DOTALL)[0]
    front.write_text(front.read_text().replace("<!-- instead -->", table))
    for text in site.wrong:
        print(f"Scripts/documents/pages.py: {text}", file=sys.stderr)
    return 1 if site.wrong else 0


sys.exit(main())
