"""`--timeout`: ends a process whose thread is held for too long."""

from __future__ import annotations

import faulthandler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._gustnado import Engine


class HangWatch:
    """Ends the process and prints the stacks of its threads, unless `note` is called again in time.
    It takes no turn of the interpreter, so code that holds its lock ends too.

    - `engine`: what notes its calls into the application, so that each counts alone, however many
      a turn has.
    - `seconds`: how long the thread may be held.
    - `interval`: seconds between two notes, at most, while all is well."""

    def __init__(self, engine: Engine, seconds: float, interval: float) -> None:
        self._engine = engine
        # (From the last note on, up to one interval may pass in order.)
        self._seconds = seconds + interval
        engine.watch_calls(self.note, interval)
        self.note()

    def note(self) -> None:
        """Notes that the thread is not held."""
        faulthandler.dump_traceback_later(self._seconds, file=2, exit=True)

    def end(self) -> None:
        self._engine.watch_calls(None, 0.0)
        faulthandler.cancel_dump_traceback_later()
