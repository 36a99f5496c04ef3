"""The lifespan of an ASGI application: startup and shutdown events."""

from __future__ import annotations

import asyncio
import logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

log = logging.getLogger("gustnado")


class LifespanError(Exception):
    """The application reports startup.failed, or fails."""


class Lifespan:
    """- `mode`: `auto` takes it that an application which fails at once has none; `on` does not,
    and `off` does not call it."""

    def __init__(self, app: Callable[..., Any], mode: str = "auto") -> None:
        self.state: dict[str, Any] = {}
        self._app, self._mode = app, mode
        self._task: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._started, self._stopped = asyncio.Event(), asyncio.Event()
        self._failure: str | None = None
        # It ended without a message.
        self._has_failed = False
        self._has_received = False

    async def start(self) -> None:
        if self._mode == "off":
            return
        self._task = task = asyncio.get_running_loop().create_task(self._run())
        # (A signal may have ended it, which is logged already.)
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        await self._events.put({"type": "lifespan.startup"})
        await self._either(task, self._started)
        if self._failure is not None:
            raise LifespanError(self._failure)

    async def stop(self, seconds: float) -> bool:
        """Shuts the application down within that many seconds. Returns whether it succeeded."""
        if self._task is None or self._task.done():
            return True
        await self._events.put({"type": "lifespan.shutdown"})
        if not await self._either(self._task, self._stopped, seconds):
            log.error("the application's shutdown took longer than %g s: it is cut; give it more "
                      "with --lifespan-timeout", seconds)
            return False
        if self._failure is not None:
            log.error("%s", self._failure)
        return self._failure is None and not self._has_failed

    async def _either(
        self, task: asyncio.Task[None], event: asyncio.Event, seconds: float | None = None
    ) -> bool:
        """Waits for an event or the application's end. Returns whether the event came."""
        waiting = asyncio.ensure_future(event.wait())
        both: set[asyncio.Future[Any]] = {waiting, task}
        done, _ = await asyncio.wait(both, timeout=seconds,
                                     return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return bool(done)

    async def _run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        try:
            await self._app(scope, self._receive, self._send)
        except asyncio.CancelledError:
            pass  # It was cancelled, which was logged.
        except KeyboardInterrupt:
            raise  # A signal has ended the server before the application had started.
        except BaseException as error:
            self._has_failed = True
            if self._started.is_set():
                log.error("the application's lifespan has failed", exc_info=error)
            elif self._mode == "on":
                log.error("the application's lifespan has failed", exc_info=error)
                self._failure = "the application could not start"
            elif self._has_received:
                log.warning("the application's lifespan has failed while it started; requests are "
                            "served all the same; with --lifespan on they would not be, and with "
                            "--lifespan off it is not called", exc_info=error)
            # Else it has no lifespan. (By the specification it fails then.)
        finally:
            self._started.set()
            self._stopped.set()

    async def _receive(self) -> dict[str, Any]:
        self._has_received = True
        return await self._events.get()

    async def _send(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "lifespan.startup.complete":
            self._started.set()
        elif kind == "lifespan.startup.failed":
            text = message.get("message") or "it does not say why"
            self._failure = f"the application could not start: {text}"
            self._started.set()
        elif kind == "lifespan.shutdown.complete":
            self._stopped.set()
        elif kind == "lifespan.shutdown.failed":
            text = message.get("message") or "it does not say why"
            self._failure = f"the application could not end: {text}"
            self._stopped.set()
        else:
            raise ValueError(f"expected a reply to {kind.split('.')[:2]}, found {kind!r}")
