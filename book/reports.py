#!/usr/bin/env python3
"""Copies the reports of contests that are here into the built book, next to its pages.

    book/reports.py target/book

`make bench` and `make contest` leave them in target/bench. `links.py` adds a list of them to the
page of the results; where there is none, the book has no such list.
"""

import os
import pathlib
import shutil
import sys

# What a report consists of besides its page; what its contenders printed stays here.
LEFT_OUT = shutil.ignore_patterns("logs", "contest.previous.json")


def found():
    """The name and the folder of each report."""
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "bench"
    pages = sorted(folder.glob("contest-*/index.html"))
    return [(page.parent.name.removeprefix("contest-"), page.parent) for page in pages]


def section():
    """What the page of the results says of them."""
    if not found():
        return ""
    lines = [f"- [{name}](../reports/{name}/index.html)" for name, _ in found()]
    return "\n## Reports of this build\n\n" + "\n".join(lines) + "\n"


def main():
    for name, folder in found():
        shutil.copytree(folder, pathlib.Path(sys.argv[1]) / "reports" / name, ignore=LEFT_OUT)


if __name__ == "__main__":
    main()
