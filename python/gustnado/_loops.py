"""Loops of asyncio that the engine works in: Python's own, and uvloop's."""

import asyncio
import importlib.util

NAMES = ("auto", "asyncio", "uvloop")


class LoopError(ValueError):
    """A loop that was asked for and cannot be had. Its text is for the user."""


def choose(name):
    """`auto` is uvloop where it is installed: requests that wait for nothing cost the same on both,
    and what waits costs less on it (docs/python/asgi.md has the figures)."""
    if name == "auto":
        name = "uvloop" if importlib.util.find_spec("uvloop") is not None else "asyncio"
    return Uvloop() if name == "uvloop" else AsyncioLoop()


class AsyncioLoop:
    """Python's loop, whose selector is the engine: one look at the kernel serves both."""

    name = "asyncio"

    def __init__(self):
        from ._selector import EngineSelector

        self._selector = EngineSelector()
        self.loop = asyncio.SelectorEventLoop(self._selector)
        asyncio.set_event_loop(self.loop)

    def drive(self, engine):
        """From now on the loop has this engine take its turns; none: no more."""
        self._selector.drive(engine)


class Uvloop:
    """uvloop's, which watches the engine's descriptor and has it take a turn when that can be
    read."""

    name = "uvloop"

    def __init__(self):
        try:
            import uvloop
        except ImportError as error:
            raise LoopError(
                f"--loop uvloop, but it cannot be imported ({error}); pip install uvloop, or leave "
                "it out"
            ) from None

        class Loop(uvloop.Loop):
            """One whose object has attributes of its own, as tasks that begin at once need it."""

        self.loop = Loop()
        asyncio.set_event_loop(self.loop)
        self._engine, self._fd = None, None
        # When the engine has to be looked after though its descriptor says nothing.
        self._timer, self._due = None, 0.0

    def drive(self, engine):
        if self._engine is not None:
            self.loop.remove_reader(self._fd)
            self._forget_timer()
        self._engine = engine
        if engine is not None:
            self._fd = engine.fileno()
            self.loop.add_reader(self._fd, self._turn)
            # Not here: tasks that begin at once must not begin within another one.
            self.loop.call_soon(self._turn)

    def _turn(self):
        if self._engine is None:
            return
        due = self._engine.poll_once()
        if due is None:
            return
        if due == 0.0:
            self.loop.call_soon(self._turn)
            return
        at = self.loop.time() + due
        if self._timer is None or at < self._due:
            self._forget_timer()
            self._timer, self._due = self.loop.call_at(at, self._on_time), at

    def _on_time(self):
        self._timer = None
        self._turn()

    def _forget_timer(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
