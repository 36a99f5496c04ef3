"""Writes the pages of contests/hosting.toml: text of a program's kind, always the same.

    python3 contests/hosting/pages.py FOLDER

`text/4k.css` and `text/64k.css` have 4 and 64 KiB, `items.json` has 40 KiB. By gzip each becomes a
fifth to a third of that.
"""

import json
import random
import sys
from pathlib import Path

WORDS = ("active align background body border bottom button card color column container content "
         "control dark display fixed flex focus font footer form grid header height hidden hover "
         "icon image inline input item label large left light line link list main margin media "
         "menu nav none outline padding page panel position primary radius relative right row "
         "section shadow small solid space square table text title top width wrapper").split()
CITIES = ["Aachen", "Bergen", "Coimbra", "Dundee", "Espoo", "Florence", "Graz", "Haarlem"]


def style(dice: random.Random) -> str:
    names = ".".join(dice.sample(WORDS, dice.randint(1, 3)))
    lines = [f"  {dice.choice(WORDS)}-{dice.choice(WORDS)}: {dice.randint(0, 96)}px;"
             for _ in range(dice.randint(1, 4))]
    lines.append(f"  color: #{dice.randrange(1 << 24):06x};")
    return f".{names} {{\n" + "\n".join(lines) + "\n}\n"


def styles(length: int) -> str:
    dice, text = random.Random(length), ""
    while len(text) < length:
        text += style(dice)
    return text[:length]


def item(number: int, dice: random.Random) -> dict:
    return {
        "id": number, "name": f"{dice.choice(WORDS)} {dice.choice(WORDS)}",
        "city": dice.choice(CITIES), "price": dice.randint(100, 99_999) / 100,
        "quantity": dice.randint(1, 500), "active": dice.random() < 0.8,
        "tags": dice.sample(WORDS, dice.randint(1, 4)),
        "updated": f"2026-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}T"
                   f"{dice.randint(0, 23):02}:{dice.randint(0, 59):02}:00Z",
    }


def items(length: int) -> str:
    """A list with a last field that fills it up to this length."""
    dice, found = random.Random(40), []
    while len(json.dumps({"items": found, "filler": ""})) < length - 300:
        found.append(item(len(found) + 1, dice))
    left = length - len(json.dumps({"items": found, "filler": ""}))
    filler = "".join(dice.choice("abcdefghijklmnop") for _ in range(left))
    return json.dumps({"items": found, "filler": filler})


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "text").mkdir(exist_ok=True)
    pages = {"text/4k.css": styles(4 << 10), "text/64k.css": styles(64 << 10),
             "items.json": items(40 << 10)}
    for name, text in pages.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
