"""Writes what HttpArena mounts at /data, made up: a data set of 50 items, and files of its kinds.

    python3 arena/data.py FOLDER
"""

import json
import random
import sys
from pathlib import Path

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


def main():
    folder, dice = Path(sys.argv[1]), random.Random(11)
    (folder / "static").mkdir(parents=True, exist_ok=True)
    items = [item(number, dice) for number in range(1, 51)]
    (folder / "dataset.json").write_text(json.dumps(items, indent=2))
    for name, kilobytes in FILES.items():
        (folder / "static" / name).write_bytes(dice.randbytes(kilobytes << 10))


if __name__ == "__main__":
    main()
