"""Finds changed source files, for `--reload`."""

from __future__ import annotations

import contextlib
import importlib.util
import os


class Watch:
    """Watches the modification times of all Python files below folders."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders
        self._seen = self._scan()

    def changed(self) -> str | None:
        """Returns a file that has changed since the last call; `None` without one."""
        seen = self._scan()
        if seen == self._seen:
            return None
        different = sorted({path for path, _ in set(seen.items()) ^ set(self._seen.items())})
        self._seen = seen
        # Python would take the bytecode for that of a file with the same size and second.
        for path in different:
            for level in ("", 1, 2):
                with contextlib.suppress(OSError, NotImplementedError):
                    os.remove(importlib.util.cache_from_source(path, optimization=level))
        return different[0]

    def _scan(self) -> dict[str, int]:
        seen: dict[str, int] = {}
        for folder in self._folders:
            for base, folders, files in os.walk(folder):
                folders[:] = [one for one in folders if one[0] != "." and one != "__pycache__"]
                for name in files:
                    if name.endswith(".py"):
                        path = os.path.join(base, name)
                        try:
                            seen[path] = os.stat(path).st_mtime_ns
                        except OSError:
                            continue  # It was removed meanwhile.
        return seen
