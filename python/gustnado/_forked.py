"""Worker processes that begin as copies of this one: for applications that are objects."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

# Signals that a supervisor handles and a worker does not.
_OF_SUPERVISORS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGTTIN,
                   signal.SIGTTOU, signal.SIGUSR1)


class Forked:
    """A process that calls `run`, and ends with the exit code that it returns. Its interface is
    that of `subprocess.Popen`."""

    def __init__(self, run: Callable[[], int]) -> None:
        self._code: int | None = None
        # Between the fork and `_alone`, the copy would handle a signal as the supervisor does.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_SUPERVISORS)
        self.pid = os.fork()
        if self.pid == 0:
            _alone(run, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def poll(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self) -> int:
        if self._code is None:
            _pid, status = os.waitpid(self.pid, 0)
            self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _alone(run: Callable[[], int], mask: Iterable[int]) -> NoReturn:
    """Runs the copy. Never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in _OF_SUPERVISORS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _disown()
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        _exit(code)


def _disown() -> None:
    """Leaves to the other process what is its own: temporary folders that go with their objects,
    and processes of multiprocessing. An exit would end them."""
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes._children.clear()


def _exit(code: int) -> NoReturn:
    """Ends the copy as other processes end: with the functions of `atexit`, also those from before
    it began. But it does not go back to the code that it is a copy of."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
