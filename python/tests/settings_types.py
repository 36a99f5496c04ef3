"""Prints `gustnado/_settings.py`, the types of settings, from the table that the command has:

    python tests/settings_types.py > gustnado/_settings.py
"""

import re

from gustnado._options import FIT, REPEATED, SWITCH

HEAD = '''\
"""The arguments of `gustnado.run`, `Server` and `App.run`. Made by tests/settings_types.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict

_Path = str | PathLike[str]


class FolderSettings(TypedDict, total=False):
    """The settings of `App.files`: those of the server that a folder may have of its own."""

'''
OTHERS = '''

class Settings(FolderSettings, total=False):
    """The flags of `gustnado run`, with `_` for `-`. None is as if it were not there."""

    grace: float | None'''


def type_of(option):
    if option.name == "static":
        return "Mapping[str, str] | Sequence[str] | str"
    if option.kind == SWITCH:
        return "bool"
    if option.kind == REPEATED:
        return "str | Sequence[str]"
    if "true for" in option.takes:
        return "bool | str"
    names = re.fullmatch(r"one of ([\w., -]+)", option.takes)
    if names:
        return f"Literal[{', '.join(repr(one) for one in names[1].split(', '))}]"
    words = re.search(r"or (auto|off|never|unlimited|system)$", option.takes)
    or_word = f' | Literal["{words[1]}"]' if words else ""
    return {
        "N": f"int{or_word}", "MODE": "str", "MICROSECONDS": f"int{or_word}", "SECONDS": "float",
        "TIME": "float | str", "SIZE": "int | str", "RATE": "int | str",
        "PATH": "_Path", "DIR": "_Path", "FILE": "_Path",
    }.get(option.placeholder, "str").replace("'", '"')


def field_of(option):
    kind = type_of(option).replace("'", '"')
    return f"    {option.name.replace('-', '_')}: {kind} | None"


def text():
    options = [option for _name, option in sorted(FIT.items())]
    of_folders = [field_of(option) for option in options if option.fits_folder]
    others = [field_of(option) for option in options if not option.fits_folder]
    return HEAD + "\n".join([*of_folders, OTHERS, *others]) + "\n"


if __name__ == "__main__":
    print(text(), end="")
