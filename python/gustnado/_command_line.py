"""Parses a command line: our flags, and those of other servers."""

from __future__ import annotations

import os
import sys
import textwrap

from . import _peers
from ._options import (
    BARE,
    FIT,
    FRIENDLY,
    NO,
    OPTIONAL,
    OPTIONS,
    REPEATED,
    SWITCH,
    UNFIT,
    YES,
    SettingError,
    nearest,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._options import Option
    from ._peers import Row

HELP_WIDTH = 100
USAGE = "usage: gustnado run [OPTIONS] MODULE:NAME"
ABOUT = "Serves a Python application: a gustnado.App, or one by ASGI or WSGI."
EXAMPLES = """\
  gustnado run main:app                         Starlette, FastAPI: ASGI
  gustnado run --workers 2 --threads 8 mysite.wsgi:application      Django, Flask: WSGI
  gustnado run --reload main:app                while it is developed"""


class PrintAndExit(Exception):
    """Help or a version, which is printed instead of anything else."""


class Arguments:
    """What a command line says.

    - `given`: by the names of settings, lists of pairs: a text, and what the user has written.
    - `weak`: the same, for what counts only if nothing else says it.
    - `app`: the application's name; `None`: there is none."""

    def __init__(self, arguments: Iterable[str]) -> None:
        self.given: dict[str, list[tuple[str, str]]] = {}
        self.weak: dict[str, list[tuple[str, str]]] = {}
        self.names: list[str] = []
        self._left = list(arguments)
        # The word after `--access-log`, which may be the application instead.
        self._doubtful: str | None = None
        while self._left:
            self._take(self._left.pop(0))
        if not self.names and self._doubtful is not None:
            self.given["access-log"] = [("-", "--access-log")]
            self.names = [self._doubtful]
        if len(self.names) > 1:
            raise SettingError(
                f"{self.names[1]}: one application is all that can be served; leave this one out"
            )
        self.app = self.names[0] if self.names else None

    def _take(self, word: str) -> None:
        if word == "--":
            self.names += self._left
            self._left = []
        elif not word.startswith("-") or word == "-":
            self.names.append(word)
        else:
            flag, value = _split(word)
            if flag in ("-h", "--help"):
                raise PrintAndExit(page(is_whole=flag == "--help"))
            if flag in ("-v", "-V", "--version"):
                raise PrintAndExit(version())
            option = _SHORTS.get(flag) or OPTIONS.get(flag.removeprefix("--"))
            if option is not None and flag.startswith(("--", option.short or "--")):
                self._take_ours(option, flag, value)
            elif flag in _peers.BY_WORD:
                self._take_theirs(_peers.BY_WORD[flag], flag, value)
            else:
                raise SettingError(_unknown(flag))

    def _take_ours(self, option: Option, flag: str, value: str | None) -> None:
        if option.name in UNFIT:
            raise SettingError(f"{flag}: {UNFIT[option.name]}")
        if value is None and option.kind == SWITCH:
            value = self._left.pop(0) if self._left[:1] and self._left[0] in YES + NO else "true"
        elif value is None and option.kind == OPTIONAL:
            value = "-"
            if self._left and (self._left[0] == "-" or not self._left[0].startswith("-")):
                value = self._left.pop(0)
                self._doubtful = value if value != "-" else None
        elif value is None and option.kind == BARE:
            value = "true"
        elif value is None:
            value = self._value_of(flag)
        self._set(option.name, value, flag)

    def _set(self, name: str, value: str, place: str) -> None:
        if OPTIONS[name].kind == REPEATED:
            self.given.setdefault(name, []).append((value, place))
        else:
            self.given[name] = [(value, place)]

    def _take_theirs(self, row: Row, flag: str, value: str | None) -> None:
        if row.kind == _peers.REFUSED:
            raise SettingError(row.refusal(flag))
        if row.takes and value is None:
            value = self._value_of(flag)
        for name, text, is_weak in row.sets(flag, value or ""):
            if is_weak:
                self.weak[name] = [(text, flag)]
            else:
                self._set(name, text, flag)

    def _value_of(self, flag: str) -> str:
        if not self._left or (self._left[0].startswith("--") and _is_known(self._left[0])):
            raise SettingError(f"{flag}: expected a value, found none; write one behind it")
        return self._left.pop(0)


_SHORTS = {option.short: option for option in OPTIONS.values() if option.short}


def _split(word: str) -> tuple[str, str | None]:
    """Splits a flag from a value in the same word: `--port=80`, `-p80`, `-p=80`."""
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    return word[:2], word[2:].removeprefix("=") if len(word) > 2 else None


def _is_known(word: str) -> bool:
    flag = _split(word)[0]
    return flag.removeprefix("--") in OPTIONS or flag in _peers.BY_WORD


def _unknown(flag: str) -> str:
    near = nearest(flag, [option.flag for option in FIT.values()])
    hint = f"did you mean {near}?" if near else "`gustnado run --help` lists them all"
    return f"{flag}: no such flag; {hint}"


def version() -> str:
    from ._gustnado import __version__

    return f"gustnado {__version__} (CPython {sys.version.split()[0]})"


# --- Help.

def page(is_whole: bool) -> str:
    """- `is_whole`: with the engine's settings too."""
    groups: dict[str, list[Option]] = {}
    for option in FIT.values():
        groups.setdefault(option.group, []).append(option)
    order = [name for name in FRIENDLY if name in groups]
    if is_whole:
        order += [name for name in groups if name not in FRIENDLY]
    lines = [ABOUT, "", USAGE, "", EXAMPLES, ""]
    for name in order:
        lines.append(f"{name}:")
        for option in groups[name]:
            lines += _entry(option)
        lines.append("")
    lines += _foot(is_whole)
    return "\n".join(lines)


def _entry(option: Option) -> list[str]:
    short = f"{option.short}, " if option.short else "    "
    value = {
        SWITCH: "", OPTIONAL: f" [{option.placeholder}]", BARE: f"[={option.placeholder}]"}.get(
        option.kind, f" {option.placeholder}")
    help_line = f"{option.doc} [{option.default}]"
    wrapped = textwrap.wrap(help_line, _width() - 34, break_on_hyphens=False) or [""]
    head = f"  {short}{option.flag}{value}"
    if len(head) > 32:
        return [head, *(" " * 34 + line for line in wrapped)]
    return [f"{head:<34}{wrapped[0]}", *(" " * 34 + line for line in wrapped[1:])]


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() else HELP_WIDTH
    return min(max(width, 60), HELP_WIDTH)


def _foot(is_whole: bool) -> list[str]:
    lines = [
        "Times are written 500ms, 30s, 5m, 2h or as plain seconds; sizes 64k, 10m, 1g or as plain",
        "bytes. Each flag is a variable too: GUSTNADO_TIMEOUT_KEEP_ALIVE=30s; PORT and",
        "WEB_CONCURRENCY count where neither says otherwise. Most flags of uvicorn, gunicorn,",
        "granian and hypercorn are understood: -k, --graceful-timeout, --workers-max-rss.",
    ]
    if not is_whole:
        lines.append("`gustnado run --help` lists the settings of the engine too.")
    return lines
