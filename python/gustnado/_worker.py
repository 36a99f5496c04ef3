"""One worker process of a supervisor's: `python -m gustnado._worker DESCRIPTOR`, or its copy."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading

from . import _logs, _run
from ._plan import Plan
from ._process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> int:
    channel = socket.socket(fileno=int(sys.argv[1]))
    with channel.makefile("rb") as lines:
        plan = Plan.from_json(lines.readline())
    _logs.set_up(plan)
    _run.set_process_name(plan.name)
    return serve(channel, plan)


def serve(channel: socket.socket, plan: Plan) -> int:
    """Serves until its supervisor says otherwise. Returns the exit code.

    - `channel`: the messages to the supervisor; it closes when the supervisor is gone."""
    # The supervisor receives Ctrl-C too, and decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    def report(kind: str, what: dict[str, Any]) -> None:
        try:
            channel.sendall(json.dumps([kind, what]).encode() + b"\n")
        except OSError:
            pass  # It is gone, and this process ends for that.

    process = Process(plan, report, [signal.SIGTERM], reloads=False)
    threading.Thread(target=_follow_supervisor, args=(channel, process), daemon=True).start()
    try:
        return process.run()
    except _run.START_ERRORS as error:
        return _run.report_failure(error)


def _follow_supervisor(channel: socket.socket, process: Process) -> None:
    """Ends this process in order when its supervisor says so, and which sockets are left to it
    then, and whether it was replaced; or when the supervisor is gone."""
    said = b""
    while not said.endswith(b"\n") and (piece := _received(channel)):
        said += piece
    if said.endswith(b"\n"):
        left, is_replaced = json.loads(said)
        process.take_over(left)
        if is_replaced:
            process.be_replaced()
    os.kill(os.getpid(), signal.SIGTERM)
    while said and _received(channel):
        pass


def _received(channel: socket.socket) -> bytes:
    """Returns what has come, or nothing once the supervisor is gone."""
    try:
        return channel.recv(4096)
    except ConnectionResetError:
        return b""  # It was killed before it had read a message of this process.


if __name__ == "__main__":
    sys.exit(main())
