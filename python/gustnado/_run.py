"""`gustnado run module:app`: runs a server from the command line, and prints its banner."""

from __future__ import annotations

import os
import sys

from . import _command_line, _loading, _logs, _privileges, _threads
from ._lifespan import LifespanError
from ._options import SettingError
from ._plan import plan_of
from ._process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any

    from ._plan import Plan

    # Called with a kind of event and its facts.
    Report = Callable[[str, dict[str, Any]], object]

# Errors of a start. Every other exception is a bug, and shows its traceback.
START_ERRORS = (_loading.LoadError, LifespanError, OSError, ValueError)


def main(arguments: Sequence[str]) -> int:
    try:
        parsed = _command_line.Arguments(arguments)
        if parsed.app is None:
            raise SettingError(
                "expected an application, found none; name its module and its name there: "
                "gustnado run main:app"
            )
        plan, warnings = plan_of(parsed.app, parsed.given, parsed.weak)
        warn(warnings)
        _logs.set_up(plan)
    except _command_line.PrintAndExit as asked:
        return print_page(asked)
    except START_ERRORS as error:
        return report_failure(error)
    return serve(plan)


def serve(plan: Plan) -> int:
    """Serves until it is ended. Returns the exit code."""
    try:
        return run(plan, lambda kind, facts: print_event(plan, kind, facts))
    except START_ERRORS as error:
        return report_failure(error)


def run(
    plan: Plan, report: Report, began: Callable[[Process], object] | None = None
) -> int:
    """The same, but for what it cannot start for, which is raised.

    - `began`: called with the process that serves, if it is this one."""
    with PidFile(plan.pid):
        set_process_name(plan.name)
        if is_supervised(plan):
            from ._supervisor import Supervisor

            return Supervisor(plan).run()
        process = Process(plan, report)
        if began is not None:
            began(process)
        code = process.run()
        if process.successor is not None:
            from . import _successor

            return _successor.supervise(process, *process.successor)
    return code


def is_supervised(plan: Plan) -> bool:
    """Whether the plan needs a supervisor."""
    return bool(plan.workers > 1 or plan.reload or plan.preload or plan.max_requests
                or plan.max_worker_rss or plan.max_lifetime or plan.timeout)


class PidFile:
    """Keeps a file with this process's id while it serves."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path) if path else None

    def __enter__(self) -> None:
        if self._path is None:
            return
        try:
            other = _pid_in(self._path)
            if other is not None and other != os.getpid() and _is_alive(other):
                raise SettingError(
                    f"--pid {self._path}: process {other} is there, and is running; end it, "
                    "or name another file"
                )
            with open(self._path, "w") as file:
                file.write(f"{os.getpid()}\n")
        except OSError as error:
            raise SettingError(
                f"--pid {self._path}: {error.strerror}; name a file in a folder that you may "
                "write to"
            ) from None

    def __exit__(self, *_: object) -> None:
        # (Workers that are copies leave it alone.)
        if self._path is not None and _pid_in(self._path) == os.getpid():
            try:
                os.unlink(self._path)
            except PermissionError:
                pass  # After --user, a folder of root's keeps it; no process has the number then.


def _pid_in(path: str) -> int | None:
    try:
        with open(path) as file:
            return int(file.read(32))
    except (FileNotFoundError, ValueError):
        return None


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def set_process_name(name: str) -> None:
    """Sets the process name in ps and top. (The kernel keeps 15 bytes.)"""
    if name:
        with open("/proc/self/comm", "w") as file:
            file.write(name.encode()[:15].decode(errors="ignore"))


# --- Output.

def print_event(plan: Plan, kind: str, facts: dict[str, Any]) -> None:
    if kind == "ready":
        print_banner(plan, facts["names"], facts)


def print_banner(plan: Plan, names: list[str], facts: dict[str, Any]) -> None:
    """Where is served, what, and by how many processes and threads. The first line begins as that
    of `gustnado serve`, for scripts too."""
    if plan.quiet:
        return
    from ._gustnado import __version__

    paint = _painted if _is_terminal() else _plain
    urls = " and ".join(paint("1", name) for name in names)
    count = f"{plan.workers} process{'es' if plan.workers > 1 else ''}"
    lines = [("serves", f"{plan.title} ({facts['how']}, {count})"),
             ("runs", _threads.sentence(plan, facts["interface"]))]
    lines += [("note", warning) for warning in _threads.warnings(plan, facts["interface"])]
    lines += [("note", warning) for warning in _privileges.warnings(plan)]
    lines.append(("stop", "Ctrl-C lets responses finish, a second Ctrl-C does not"))
    text = [f"{paint('32', f'gustnado {__version__}')} listens on {urls}"]
    text += [f"  {paint('2', f'{name:<6}')}  {line}" for name, line in lines]
    print_line("\n".join(text))


def _is_terminal() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def _painted(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _plain(_code: str, text: str) -> str:
    return text


def print_page(page: object) -> int:
    try:
        print(page, flush=True)
    except BrokenPipeError:
        # The reader is gone, so nothing is printed at the end, either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def warn(warnings: list[str]) -> None:
    for warning in warnings:
        print_line(f"warning: {warning}")


def report_failure(error: BaseException) -> int:
    """One line, with the application's own error before it. Returns the exit code."""
    cause = error.__cause__
    if cause is not None:
        import traceback

        trace = cause.__traceback__
        # Where it was imported from is of no interest.
        while trace is not None and _is_ours(trace):
            trace = trace.tb_next
        traceback.print_exception(type(cause), cause, trace)
    print_line(f"gustnado: {error}")
    return 2 if isinstance(error, ValueError) else 1


def _is_ours(trace: TracebackType) -> bool:
    name = trace.tb_frame.f_code.co_filename
    return "importlib" in name or os.path.dirname(__file__) in name
