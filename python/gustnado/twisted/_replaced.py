"""Functions of other packages that the engine replaces, and whether they are known.

A function is known by a digest of its source. Where a release has another one, or a program has put
something else in its place, it is called itself.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, TypeAlias

from twisted.python import log

# Owners, each with the names of its functions.
FunctionNames: TypeAlias = Iterable[tuple[type | ModuleType, tuple[str, ...]]]

# For each release, the digests of its functions by their names. The first release has all of them,
# the others those that are not the first's.
ReleaseDigests: TypeAlias = Mapping[str, Mapping[str, str]]


class Functions:
    """Functions that were there at the start."""

    def __init__(self, names: FunctionNames) -> None:
        self._found = [
            (owner, vars(owner), name, vars(owner).get(name))
            for owner, of_owner in names for name in of_owner
        ]

    def digests(self) -> dict[str, str]:
        """Returns the digests of the functions' sources, by the functions' names."""
        return {_label(owner, name): _digest(function) for owner, _, name, function in self._found}

    def unknown(self, releases: ReleaseDigests) -> tuple[str, list[str]]:
        """Returns what `unknown` says of these functions."""
        return unknown(self.digests(), releases)

    def are_in_place(self, except_for: Iterable[str] = ()) -> bool:
        """Returns whether a program has replaced none of them."""
        return all(
            namespace.get(name) is function
            for _, namespace, name, function in self._found if name not in except_for
        )


def unknown(digests: Mapping[str, str], releases: ReleaseDigests) -> tuple[str, list[str]]:
    """Returns the release with most of these functions, and the names of those that it lacks."""
    newest = next(iter(releases.values()))
    lacking = {
        release: [name for name, digest in digests.items()
                  if {**newest, **changed}.get(name) != digest]
        for release, changed in releases.items()
    }
    nearest = min(lacking, key=lambda release: len(lacking[release]))
    return nearest, lacking[nearest]


def _label(owner: type | ModuleType, name: str) -> str:
    if isinstance(owner, ModuleType):
        return f"{owner.__name__.rpartition('.')[2]}.{name}"
    return f"{owner.__module__.rpartition('.')[2]}.{owner.__qualname__}.{name}"


def _digest(function: Any) -> str:
    try:
        source = inspect.getsource(getattr(function, "__func__", function))
    except (OSError, TypeError):
        return "no source"
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def log_unknown(package: str, nearest: str, names: list[str], effect: str) -> None:
    """Writes one line about functions that are not known."""
    log.msg(
        f"{effect}: in {package}, {', '.join(names)} {'differs' if len(names) == 1 else 'differ'} "
        f"from {nearest}, the nearest release that is known",
        system="gustnado",
    )
