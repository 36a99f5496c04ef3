"""Reports handlers that block the engine's thread: another thread looks now and then, and logs a
line.

It costs requests nothing. The engine counts its turns; while one goes on for long, the stack of its
thread shows the request that holds it, and where.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import sysconfig
import threading
import time

from ._gustnado import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType, FrameType

    from ._gustnado import Alert, _HandlerSpec

log = logging.getLogger("gustnado")

# Interval of checks while the thread is blocked.
BLOCKED_CHECK_SECONDS = 0.01
# Multiple of the limit at which a running handler is named.
REPEAT_FACTOR = 10

_OURS = os.path.dirname(__file__) + os.sep
# Packages of event loops.
_LOOPS = os.path.dirname(asyncio.__file__) + os.sep
# Folders of code that is rarely the application's own.
_FOREIGN = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<frozen",
)


class SlowHandlerMonitor:
    """- `alert`: the engine's, which counts its turns.
    - `limit`: seconds that a handler may hold the thread without being named.
    - `thread`: the identity of the engine's thread.
    - `handlers`: functions with their places, for those that do not take a request."""

    def __init__(
        self, alert: Alert, limit: float, thread: int, handlers: list[_HandlerSpec]
    ) -> None:
        self._alert, self._limit, self._thread = alert, limit, thread
        self._places: dict[CodeType | None, str] = {
            getattr(function, "__code__", None): f"{method or 'ANY'} {path}"
            for method, path, function, *_ in handlers
        }
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="gustnado-slow", daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        """Samples four times within the limit. Code found each time blocks, if no turn ended."""
        turns, since = -1, 0.0
        held: RunningCode | None = None
        while not self._ended.wait(self._limit / 4):
            now, (found, up_for) = time.monotonic(), self._alert.pulse()
            running = self._running_code() if found == turns else None
            if running is None:
                turns, held, since = found, None, now - up_for
            elif held is None or running.frame is not held.frame:
                # It was not in the last sample, or there was none.
                since = max(now - up_for, since if held is None else now)
                held = running
            elif now - since >= self._limit:
                self._name(held, since, turns)
                turns, held = -1, None

    def _name(self, held: RunningCode, since: float, turns: int) -> None:
        """Waits until the thread is free, and logs the handler that blocked it, with the time."""
        again = self._limit * REPEAT_FACTOR
        while not self._ended.wait(BLOCKED_CHECK_SECONDS):
            took = time.monotonic() - since
            running = self._running_code() if self._alert.pulse()[0] == turns else None
            if running is None or running.frame is not held.frame:
                log.warning(
                    "%s (%s) held the thread for %.2f s: nothing else was served meanwhile",
                    held.request, held.place, took,
                )
                return
            if took >= again:
                again *= REPEAT_FACTOR
                log.warning(
                    "%s (%s) holds the thread for %.0f s already: nothing else is served",
                    held.request, held.place, took,
                )

    def _running_code(self) -> RunningCode | None:
        """Returns the application code that runs on the engine's thread, if any."""
        frames: list[FrameType] = []
        frame = sys._current_frames().get(self._thread)
        while frame is not None and not frame.f_code.co_filename.startswith(_OURS + "_process"):
            frames.append(frame)
            frame = frame.f_back
        while frames and frames[-1].f_code.co_filename.startswith((_OURS, _LOOPS)):
            frames.pop()
        return RunningCode(frames, self._places) if frames else None


class RunningCode:
    """Code of an application's that runs.

    - `frames`: innermost first."""

    def __init__(self, frames: list[FrameType], places: Mapping[CodeType | None, str]) -> None:
        self.frame = frames[-1]
        requests = filter(None, map(_request_of, reversed(frames)))
        handlers = filter(None, (places.get(frame.f_code) for frame in reversed(frames)))
        self.request = next(requests, None) or next(handlers, "something that is no request")
        self.place = _name(next(filter(_is_own, frames), frames[0]))


def _is_own(frame: FrameType) -> bool:
    return not frame.f_code.co_filename.startswith((*_FOREIGN, _OURS))


def _name(frame: FrameType) -> str:
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)
    return f"{frame.f_globals.get('__name__', '?')}.{name}"


def _request_of(frame: FrameType) -> str | None:
    """Returns the request among a function's arguments, if there is one."""
    code = frame.f_code
    named = code.co_varnames[:min(code.co_argcount, 4)]
    found = frame.f_locals if named else {}
    for value in map(found.get, named):
        if isinstance(value, Request):
            return f"{value.method} {value.path}"
        if isinstance(value, dict) and value.get("type") == "http":
            return f"{value.get('method')} {value.get('path')}"
        if isinstance(value, dict) and "wsgi.input" in value:
            return f"{value.get('REQUEST_METHOD')} {value.get('PATH_INFO')}"
    return None
