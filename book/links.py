#!/usr/bin/env python3
"""Preprocessor of mdBook: links that leave docs/ lead to the repository, which has their pages.

mdBook calls it twice: `links.py supports html`, and then with `[context, book]` as JSON on
standard input, of which it wants the book back."""

import json
import posixpath
import re
import sys

import reports

# The page that lists reports of contests, if there are any.
RESULTS = "results/contests.md"
REPOSITORY = "https://github.com/gustnado/gustnado/blob/main/"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def address(target, page):
    """What a link of `page` (its path in docs/) leads to in the book."""
    if "://" in target or target.startswith(("#", "mailto:")):
        return target
    path, mark, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
    if path.startswith("docs/"):
        # (mdBook makes `index.html` of a README, and leaves links to it as they were.)
        return target.replace("README.md", "index.md")
    return REPOSITORY + path + mark + anchor


def rewrite(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if not chapter:
            continue
        page = chapter.get("source_path") or chapter.get("path") or ""
        chapter["content"] = LINK.sub(
            lambda link, page=page: link[1] + address(link[2], page) + link[3],
            chapter["content"])
        if page == RESULTS:
            chapter["content"] += reports.section()
        rewrite(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    # (The name of the list is another one in mdBook before 0.5.)
    rewrite(book.get("items") or book.get("sections") or [])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
