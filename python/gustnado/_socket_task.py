"""The task of a WebSocket's handler."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SocketTask(asyncio.Task[object]):
    """A task whose WebSocket keeps its next step while it waits for a message."""

    __slots__ = ("_run",)

    # The engine's `SocketRun`.
    _run: Any

    def cancel(self, msg: Any | None = None) -> bool:
        is_cancelled = super().cancel(msg)
        if is_cancelled:
            # While its step is kept, it waits for no future that would be cancelled in its place.
            self._run.resume()
        return is_cancelled
