"""A server as an object: run in any thread, and stopped from any."""

from __future__ import annotations

import functools
import os
import signal
import threading

from . import _logs, _run
from ._options import SettingError
from ._plan import arguments_of, plan_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self, Unpack

    from ._app import App
    from ._plan import Plan
    from ._process import Process
    from ._settings import Settings


def run(app: Callable[..., object] | App | str, **settings: Unpack[Settings]) -> None:
    """Serves an application, or one by its name as in `gustnado run`, until Ctrl-C or TERM.

    `settings` are the flags of `gustnado run`: `run("main:app", port=8000, workers=4)`. In a
    thread that is not the main one it receives no signals; there a `Server` can be ended.
    """
    made(app, settings).run()


def made(app: Callable[..., object] | App | str, settings: Settings) -> Server:
    """A server of a program that has nothing else to do: where its settings are none, it exits."""
    try:
        return Server(app, **settings)
    except ValueError as error:
        if not _is_main():
            raise
        raise SystemExit(_run.report_failure(error)) from None


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


class Server:
    """A server that is run where and when you say:

        server = gustnado.Server("main:app", port=0)
        threading.Thread(target=server.run).start()
        ...
        server.should_exit = True

    or, for as long as a block takes: `with gustnado.Server(app, port=0) as server:`.
    """

    def __init__(
        self, app: Callable[..., object] | App | str, **settings: Unpack[Settings]
    ) -> None:
        self._app, self._given = app, arguments_of(settings)
        self._process: Process | None = None
        self._names: list[str] = []
        self._thread: threading.Thread | None = None
        self._should_exit = False
        self._failure: Exception | None = None
        # Set once it serves, and once it has ended or could not start.
        self._started, self._ended = threading.Event(), threading.Event()
        self._owner: int | None = None

    @property
    def started(self) -> bool:
        """Whether it serves, or has served."""
        return self._started.is_set()

    @property
    def urls(self) -> list[str]:
        """Where it listens: `http://127.0.0.1:8000/`, or `unix:PATH`."""
        return list(self._names)

    @property
    def should_exit(self) -> bool:
        """Whether it should end. Set it, from any thread, and it ends in order."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        if value:
            self.stop()

    def stop(self) -> None:
        """Drains and stops it: responses may finish. Returns at once; `run` returns afterwards."""
        self._should_exit = True
        if self._process is not None:
            self._process.stop()
        elif self._owner is not None:
            # The process that called `run` supervises the workers.
            os.kill(self._owner, signal.SIGTERM)

    def run(self) -> None:
        """Serves until it is ended. In the main thread Ctrl-C and TERM end it, and where it cannot
        start, the program exits with 1 or 2, as `gustnado run` does; elsewhere that is raised."""
        self._started.clear()
        self._ended.clear()
        try:
            code = self._run()
        except _run.START_ERRORS as error:
            self._failure = error
            if not _is_main():
                raise
            raise SystemExit(_run.report_failure(error)) from None
        finally:
            self._process = self._owner = None
            self._ended.set()
        if code:
            raise SystemExit(code)

    def _run(self) -> int:
        plan, warnings = plan_of(self._app, self._given)
        _run.warn(warnings)
        _logs.set_up(plan)
        if _run.is_supervised(plan):
            if not _is_main():
                raise SettingError(
                    "worker processes, reload and what replaces workers need the main thread, "
                    "which receives signals; leave workers, reload, timeout and max_… out"
                )
            self._owner = os.getpid()
        with _Signals():
            return _run.run(plan, functools.partial(self._on_event, plan), self._begin)

    def _begin(self, process: Process) -> None:
        self._process = process
        if self._should_exit:
            process.stop()

    def _on_event(self, plan: Plan, kind: str, facts: dict[str, Any]) -> None:
        if kind == "ready":
            # (A URL may be followed by other addresses.)
            self._names = [name if name.startswith("unix:") else name.split()[0]
                           for name in facts["names"]]
            self._started.set()
        _run.print_event(plan, kind, facts)

    # --- In a thread of its own.

    def __enter__(self) -> Self:
        self._thread = thread = threading.Thread(
            target=self._run_quietly, name="gustnado", daemon=True)
        thread.start()
        while not self._started.wait(0.01):
            if self._ended.is_set() and not self._started.is_set():
                thread.join()
                raise self._failure or RuntimeError("the server has ended before it served")
        return self

    def _run_quietly(self) -> None:
        try:
            self.run()
        except _run.START_ERRORS:
            pass  # It is raised where it was started.

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()


class _Signals:
    """Restores the program's signal handlers after serving."""

    ENDING = (signal.SIGINT, signal.SIGTERM)
    NUMBERS = (*ENDING, signal.SIGHUP, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU,
               signal.SIGUSR1)

    def __enter__(self) -> None:
        self._before = [(number, signal.getsignal(number)) for number in self.NUMBERS]
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def __exit__(self, *_: object) -> None:
        if not _is_main():
            return  # It has received none.
        signal.pthread_sigmask(signal.SIG_BLOCK, self.ENDING)
        while pending := signal.sigpending() & set(self.ENDING):
            # They were for the server.
            signal.sigtimedwait(pending, 0)
        for number, handler in self._before:
            if handler is not None:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
