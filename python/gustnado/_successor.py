"""HUP in a process without a supervisor: a successor imports the application again and takes the
sockets over. Then this one ends serving, and stays as the supervisor of the other, so that its
id stays the same for its parent."""

from __future__ import annotations

import logging
import threading

from ._shared_load import SharedLoad
from ._supervisor import Supervisor, Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._process import Process
    from ._sockets import Listening

log = logging.getLogger("gustnado")

_starting = threading.Lock()


def start(process: Process, listening: Listening) -> bool:
    """Starts a successor, and ends `process` once it is ready. If it cannot start, all stays as it
    is. Returns false if one is being started already."""
    is_first = _starting.acquire(blocking=False)
    if is_first:
        log.info("HUP: the application is imported again")
        threading.Thread(target=_start, args=(process, listening), daemon=True).start()
    return is_first


def _start(process: Process, listening: Listening) -> None:
    try:
        load = SharedLoad()
        worker = Worker(1, process.plan, listening, load)
        if worker.waits_until_ready():
            process.hand_over((worker, load))
        else:
            worker.process.wait()
            log.error("HUP: the new process could not start: this one goes on")
    finally:
        _starting.release()


def supervise(process: Process, worker: Worker, load: SharedLoad) -> int:
    """Goes on as the supervisor of what has taken over. Returns the exit code."""
    supervisor = Supervisor(process.plan, process.listening, load)
    return supervisor.run(worker, process)
