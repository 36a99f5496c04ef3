"""One worker process of a supervisor's: `python -m gustnado._worker DESCRIPTOR`, or its copy."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading

from . import _logs, _run
from ._plan import Plan
from ._process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader
    from typing import Any


def main() -> int:
    channel = socket.socket(fileno=int(sys.argv[1]))
    lines = channel.makefile("rb")
    plan = Plan.from_json(lines.readline())
    _logs.set_up(plan)
    _run.set_process_name(plan.name)
    return serve(channel, lines, plan)


def serve(channel: socket.socket, lines: BufferedReader, plan: Plan) -> int:
    """Serves until its supervisor says otherwise. Returns the exit code.

    - `channel`: the messages to the supervisor; it closes when the supervisor is gone.
    - `lines`: the supervisor's messages on it."""
    # The supervisor receives Ctrl-C too, and decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    def report(kind: str, what: dict[str, Any]) -> None:
        try:
            channel.sendall(json.dumps([kind, what]).encode() + b"\n")
        except OSError:
            pass  # It is gone, and this process ends for that.

    process = Process(plan, report, [signal.SIGTERM], is_worker=True)
    threading.Thread(target=_follow_supervisor, args=(lines, process), daemon=True).start()
    try:
        return process.run()
    except _run.START_ERRORS as error:
        return _run.report_failure(error)


def _follow_supervisor(lines: BufferedReader, process: Process) -> None:
    """Ends this process when its supervisor says so, or is gone. A message is the sockets that are
    left to it then, and whether it was replaced; `null` ends it at once."""
    has_been_told = False
    try:
        for line in lines:
            said = json.loads(line)
            if said is not None:
                left, is_replaced = said
                process.take_over(left)
                if is_replaced:
                    process.be_replaced()
            has_been_told = True
            process.be_ended(at_once=said is None)
    except (ConnectionResetError, ValueError):
        pass  # It was killed: before it had read a message of this process, or within one of its.
    if not has_been_told:
        process.be_ended()


if __name__ == "__main__":
    sys.exit(main())
