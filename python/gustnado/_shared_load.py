"""How many connections each worker process has, in a file in memory that all of them hold.

The engine writes and reads it: a process with more than its share lets the others accept first.
Here processes are given places in it, and what the dead have left is taken out."""

import os

# The value of a process that does not accept.
ABSENT = b"\xff\xff\xff\xff"


class SharedLoad:
    def __init__(self):
        # It is optional: without it, the first process to wake accepts.
        try:
            self.number = os.memfd_create("gustnado")
        except (AttributeError, OSError):
            self.number = None
        self._taken = set()

    def numbers(self):
        """Returns the descriptors that workers inherit."""
        return [] if self.number is None else [self.number]

    def take_place(self):
        """A place for one more process, as the engine takes it: the file and the place."""
        if self.number is None:
            return None
        place = next(place for place in range(len(self._taken) + 1) if place not in self._taken)
        self._taken.add(place)
        self._clear(place)
        return self.number, place

    def give_back(self, place):
        """Clears the place of an ended process."""
        if place is not None:
            self._clear(place[1])
            self._taken.discard(place[1])

    def _clear(self, place):
        os.pwrite(self.number, ABSENT, place * len(ABSENT))
