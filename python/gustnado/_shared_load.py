"""How many connections each worker process has, and what it has counted, in two files in memory
that all of them hold.

The engine writes and reads them: a process with more connections than its share lets the others
accept first, and pages with counters add up all processes. Here processes are given places in the
files, and what the dead have left is taken out, but for their totals."""

from __future__ import annotations

import os

# The value of a process that does not accept.
ABSENT = b"\xff\xff\xff\xff"
# Bytes of a place in the file of counters. They begin with whether its process lives.
STATS_BYTES = 4096
DEAD = bytes(8)


class SharedLoad:
    def __init__(self) -> None:
        # It is optional: without it, the first process to wake accepts.
        self.fd, self.stats_fd = _memory_file(), _memory_file()
        self._taken: set[int] = set()

    def fds(self) -> list[int]:
        """Returns the descriptors that workers inherit."""
        return [fd for fd in (self.fd, self.stats_fd) if fd is not None]

    def take_place(self) -> tuple[int, int] | None:
        """A place for one more process, as the engine takes it: the file and the place."""
        if self.fd is None:
            return None
        place = next(place for place in range(len(self._taken) + 1) if place not in self._taken)
        self._taken.add(place)
        _clear(self.fd, place)
        return self.fd, place

    def give_back(self, place: tuple[int, int] | None) -> None:
        """Clears the place of an ended process."""
        if place is not None:
            _clear(*place)
            if self.stats_fd is not None:
                os.pwrite(self.stats_fd, DEAD, place[1] * STATS_BYTES)
            self._taken.discard(place[1])

    def stats_place(self, place: tuple[int, int] | None) -> tuple[int, int] | None:
        """The same place in the file of counters."""
        return None if place is None or self.stats_fd is None else (self.stats_fd, place[1])


def _memory_file() -> int | None:
    try:
        return os.memfd_create("gustnado")
    except (AttributeError, OSError):
        return None


def _clear(fd: int, place: int) -> None:
    os.pwrite(fd, ABSENT, place * len(ABSENT))
