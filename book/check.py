#!/usr/bin/env python3
"""Fails where a link of the built book leads to no page, or to no heading of it.

    book/check.py target/book
"""

import html.parser
import pathlib
import sys
import urllib.parse

# mdBook's own pages: one that repeats all others, and one for addresses that are not there.
LEFT_OUT = {"print.html", "404.html", "toc.html"}
# Made by others: rustdoc checks its links itself, and the lab tests those of its reports.
MADE_BY_OTHERS = {"rust", "reports"}


class Page(html.parser.HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif value and (tag, name) in (("a", "href"), ("img", "src")):
                self.links.append(value)


def dead(root):
    paths = [path for path in root.rglob("*.html")
             if path.name not in LEFT_OUT
             and path.relative_to(root).parts[0] not in MADE_BY_OTHERS]
    pages = {path: Page(path) for path in paths}
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve()
            target = path if not parts.path else target
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.exists() or (known and parts.fragment not in known.anchors):
                yield f"{path.relative_to(root)}: {link}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = list(dead(root))
    for line in found:
        print(f"dead link: {line}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
