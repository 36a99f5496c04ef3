"""Writes what HttpArena mounts at /data, made up: a data set of 50 items, and files of its kinds.

    python3 arena/data.py FOLDER
    gustnado compress --codings br,gz FOLDER/static

The arena has compressed files beside the others, too, which the second line makes.
"""

import json
import random
import sys
from pathlib import Path

# Fonts are compressed already.
TEXT = (".css", ".html", ".js", ".json", ".svg")
TAGS = ["new", "sale", "popular", "fast", "heavy-duty", "wireless"]
# Names and kilobytes of four of the twenty files: the smallest, two of the middle, the largest.
FILES = {"manifest.json": 3, "regular.woff2": 20, "header.html": 55, "vendor.js": 300}


def item(number, dice):
    return {
        "id": number, "name": f"Item {number}", "category": dice.choice(["tools", "electronics"]),
        "price": dice.randint(1, 500), "quantity": dice.randint(1, 100),
        "active": dice.random() < 0.8, "tags": dice.sample(TAGS, dice.randint(1, 4)),
        "rating": {"score": dice.randint(1, 50), "count": dice.randint(1, 200)},
    }


def text(length, dice):
    """Words of which each comes many times: a fifth is left of them by Brotli."""
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(3, 9))) for _ in range(400)]
    lines = []
    while sum(map(len, lines)) < length:
        lines.append(f'<p class="{dice.choice(words)}">{" ".join(dice.choices(words, k=8))}</p>\n')
    return "".join(lines)[:length].encode()


def main():
    folder, dice = Path(sys.argv[1]), random.Random(11)
    (folder / "static").mkdir(parents=True, exist_ok=True)
    items = [item(number, dice) for number in range(1, 51)]
    (folder / "dataset.json").write_text(json.dumps(items, indent=2))
    for name, kilobytes in FILES.items():
        length = kilobytes << 10
        content = text(length, dice) if name.endswith(TEXT) else dice.randbytes(length)
        (folder / "static" / name).write_bytes(content)


if __name__ == "__main__":
    main()
