"""How many connections each worker process has, in a file in memory that all of them hold.

The engine writes and reads it: a process with more than its share lets the others accept first.
Here processes are given places in it, and what the dead have left is taken out."""

from __future__ import annotations

import os

# The value of a process that does not accept.
ABSENT = b"\xff\xff\xff\xff"


class SharedLoad:
    def __init__(self) -> None:
        # It is optional: without it, the first process to wake accepts.
        try:
            self.fd: int | None = os.memfd_create("gustnado")
        except (AttributeError, OSError):
            self.fd = None
        self._taken: set[int] = set()

    def fds(self) -> list[int]:
        """Returns the descriptors that workers inherit."""
        return [] if self.fd is None else [self.fd]

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
            self._taken.discard(place[1])


def _clear(fd: int, place: int) -> None:
    os.pwrite(fd, ABSENT, place * len(ABSENT))
