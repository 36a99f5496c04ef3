"""Event loops that drive the engine: asyncio's own, and uvloop."""

from __future__ import annotations

import asyncio
import importlib.util

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._gustnado import Engine

NAMES = ("auto", "asyncio", "uvloop")


class LoopError(ValueError):
    """A loop that is not available. Its text is for the user."""


def choose(name: str) -> AsyncioLoop | Uvloop:
    """`auto` is uvloop if it is installed: requests that never wait cost the same on both, and
    those that wait cost less on it (docs/python/asgi.md has the figures)."""
    if name == "auto":
        name = "uvloop" if importlib.util.find_spec("uvloop") is not None else "asyncio"
    return Uvloop() if name == "uvloop" else AsyncioLoop()


def end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancels remaining tasks, as asyncio.run does."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


class AsyncioLoop:
    """asyncio's own loop, whose selector is the engine: one poll of the kernel serves both."""

    name = "asyncio"

    def __init__(self) -> None:
        from ._selector import EngineSelector

        self._selector = EngineSelector()
        self.loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop(self._selector)
        asyncio.set_event_loop(self.loop)

    def drive(self, engine: Engine | None) -> None:
        """Makes the loop drive this engine; none: no engine."""
        self._selector.drive(engine)


class Uvloop:
    """uvloop, which watches the engine's descriptor and runs a turn when it is readable."""

    name = "uvloop"

    def __init__(self) -> None:
        try:
            import uvloop
        except ImportError as error:
            raise LoopError(
                f"--loop uvloop, but it cannot be imported ({error}); pip install uvloop, or leave "
                "it out"
            ) from None

        class Loop(uvloop.Loop):
            """Creates a loop whose object has its own attributes, which eager tasks need."""

        self.loop: asyncio.AbstractEventLoop = Loop()
        asyncio.set_event_loop(self.loop)
        self._engine: Engine | None = None
        self._fd = -1
        # When the engine's next turn is due without an event of its descriptor.
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def drive(self, engine: Engine | None) -> None:
        if self._engine is not None:
            self.loop.remove_reader(self._fd)
            self._forget_timer()
        self._engine = engine
        if engine is not None:
            self._fd = engine.fileno()
            self.loop.add_reader(self._fd, self._turn)
            # Not here: eager tasks must not begin within another one.
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
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

    def _on_time(self) -> None:
        self._timer = None
        self._turn()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
