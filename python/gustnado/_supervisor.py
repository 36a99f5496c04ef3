"""Supervises worker processes: starts, watches, replaces and stops them."""

from __future__ import annotations

import dataclasses
import gc
import json
import logging
import math
import os
import selectors
import signal
import socket
import subprocess
import sys
import time

from . import _loading, _logs, _privileges, _sockets, _watching
from ._forked import Forked
from ._options import WORKERS_MAX
from ._run import print_banner
from ._shared_load import SharedLoad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ._plan import Plan
    from ._process import Process
    from ._sockets import Listening

log = logging.getLogger("gustnado")

# A worker that ends sooner has failed; the next one starts after a growing pause.
STABLE_SECONDS = 5.0
PAUSE_SECONDS, PAUSE_MAX_SECONDS = 0.1, 10.0
# Additional time after the drain time-out, before a worker is killed.
KILL_SECONDS = 1.0
# Time to flush its log at a second signal.
FLUSH_SECONDS = 0.1
NO_START = 3
# Signals that a supervisor handles.
HANDLED_SIGNALS = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU,
    signal.SIGUSR1,
)


class Worker:
    """A worker process.

    - `others`: the workers that there are already."""

    def __init__(
        self, number: int, plan: Plan, listening: Listening, load: SharedLoad,
        others: Collection[Worker] = (),
    ) -> None:
        self.number = number
        self.place = load.take_place()
        plan = dataclasses.replace(plan.on(listening), shared_load=self.place,
                                   shared_stats=load.stats_place(self.place))
        ours, theirs = socket.socketpair()
        self.channel, self._pending = ours, b""
        self.started = time.monotonic()
        self.is_ready = self.is_ending = False
        # The application shuts down: all responses were sent.
        self.is_stopping = False
        # Whether to reopen its logs once it is ready.
        self._reopens = False
        self.kill_at: float | None = None
        # The worker that it replaces once it is ready.
        self.replaces: int | None = None
        self.process: subprocess.Popen[bytes] | Forked
        if isinstance(plan.app, str):
            self.process = _spawned(theirs, listening, load)
            ours.sendall(plan.to_json().encode() + b"\n")
        else:
            channels = [ours, *(worker.channel for worker in others)]
            self.process = Forked(lambda: _run_copy(plan, channels, theirs))
        theirs.close()
        ours.setblocking(False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def messages(self) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
        """Returns its messages, and whether it still runs."""
        try:
            piece = self.channel.recv(65536)
        except BlockingIOError:
            return [], True
        except OSError:
            piece = b""
        *lines, self._pending = (self._pending + piece).split(b"\n")
        return [json.loads(line) for line in lines], bool(piece)

    def waits_until_ready(self) -> bool:
        """Waits until it is ready. Returns whether it is, and has not ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.channel, selectors.EVENT_READ)
            is_there = True
            while is_there and not self.is_ready:
                selector.select()
                lines, is_there = self.messages()
                if any(kind == "ready" for kind, _ in lines):
                    self.become_ready()
        return self.is_ready

    def end(
        self, grace: float, left: list[int] | None = None, is_replaced: bool = False
    ) -> None:
        """- `left`: the indices of sockets that are unserved once all workers have ended.
        - `is_replaced`: another worker has taken its place."""
        if not self.is_ending:
            self.is_ending = True
            self.kill_at = time.monotonic() + grace + KILL_SECONDS
            self._send([left or [], is_replaced])

    def _send(self, message: list[Any] | None) -> None:
        """Sends a message: it must not pass for a signal that the whole process group gets."""
        try:
            self.channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # The channel is closed or full: it does not read it.
            self._signal(signal.SIGTERM)

    def begin_stopping(self, seconds: float) -> None:
        """Starts the time-out of the application's shutdown."""
        self.is_stopping = True
        # (It enforces the time-out itself, unless its thread is blocked.)
        self._has_left(seconds + 2 * KILL_SECONDS)

    def has_stopped(self) -> None:
        self.is_stopping = False
        self._has_left(KILL_SECONDS)

    def _has_left(self, seconds: float) -> None:
        if self.kill_at is not None:
            self.kill_at = time.monotonic() + seconds

    def become_ready(self) -> None:
        self.is_ready = True
        if self._reopens:
            self.reopen_logs()

    def reopen_logs(self) -> None:
        """Makes it reopen its logs: now, or once it is ready."""
        self._reopens = not self.is_ready
        if self.is_ready:
            self._signal(signal.SIGUSR1)

    def end_at_once(self) -> None:
        """Makes it flush its log and end."""
        self._send(None)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, signum: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signum)


def _spawned(
    channel: socket.socket, listening: Listening, load: SharedLoad
) -> subprocess.Popen[bytes]:
    """A worker in a new interpreter, which imports its application."""
    fds = [channel.fileno(), *(one.fileno() for one in listening.sockets), *load.fds()]
    command = [sys.executable, "-m", "gustnado._worker", str(channel.fileno())]
    # Ctrl-C is the supervisor's, also before the worker can ignore it itself.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        return subprocess.Popen(command, pass_fds=fds, stdin=subprocess.DEVNULL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_copy(plan: Plan, channels: list[socket.socket], theirs: socket.socket) -> int:
    """Runs a worker that is a copy of this process.

    - `channels`: the supervisor's ends of all workers' channels. As long as one is open anywhere,
      its worker does not notice that the supervisor has ended."""
    from . import _worker

    for channel in channels:
        channel.close()
    return _worker.serve(theirs, theirs.makefile("rb"), plan)


def _preloaded(plan: Plan) -> Plan:
    """The same with the application as an object, which workers begin with as copies do.

    Raises LoadError where it cannot be imported, ValueError where that makes no sense."""
    if plan.reload:
        raise ValueError("--preload keeps the code that it has imported, and --reload imports it "
                         "again; leave one of them out")
    app = _loading.load(plan.app, plan.app_dir, plan.factory)
    _loading.interface_of(app, plan.interface)
    threads = len(os.listdir("/proc/self/task")) - 1
    if threads:
        log.warning("--preload: the application has started %d threads while it was imported; "
                    "workers, as copies of the process, do not have them", threads)
    return dataclasses.replace(plan, app=app)


class Supervisor:
    """Raises ValueError or LoadError where the plan is none that can be followed, and OSError where
    nothing can be listened on.

    - `listening`, `load`: those of a worker that is there already."""

    def __init__(
        self, plan: Plan, listening: Listening | None = None, load: SharedLoad | None = None
    ) -> None:
        if plan.reload and not isinstance(plan.app, str):
            raise ValueError("--reload needs an application by its name: 'module:app'")
        self._is_preloaded = plan.preload and isinstance(plan.app, str) and listening is None
        self._listening = listening or _sockets.listen(plan.settings)
        try:
            _privileges.drop(plan)
            self.plan = plan = _preloaded(plan) if self._is_preloaded else plan
        except BaseException:
            self._listening.close()
            raise
        self._load = load or SharedLoad()
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, Worker] = {}
        self._count = plan.workers
        self._next_number = 1
        self._is_ending = False
        self._code = 0
        self._failures, self._not_before = 0, 0.0
        # Numbers of workers that are to be replaced, one after the other.
        self._to_replace: list[int] = []
        self._has_announced = False
        self._watch = _watching.Watch(plan.reload_dirs) if plan.reload else None

    def run(self, worker: Worker | None = None, before: Process | None = None) -> int:
        """Keeps workers until a signal ends it. Returns the exit code.

        - `worker`: one that is ready already.
        - `before`: what has received signals until now."""
        wake_reader, wake_writer = socket.socketpair()
        wake_reader.setblocking(False)
        wake_writer.setblocking(False)
        signal.set_wakeup_fd(wake_writer.fileno())
        for handled in HANDLED_SIGNALS:
            signal.signal(handled, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        self._selector.register(wake_reader, selectors.EVENT_READ, None)
        if worker is not None:
            self._has_announced, self._next_number = True, worker.number + 1
            self._add(worker)
        if before is not None and before.was_signalled:
            self._end()
        elif before is not None and before.reloads_again:
            self._replace_all("HUP")
        if not isinstance(self.plan.app, str):
            # The garbage collector skips inherited objects, whose pages it would copy.
            gc.collect()
            gc.freeze()
        # (They are started one by one, between two checks for signals.)
        while self._workers or not self._is_ending:
            for key, _events in self._selector.select(self._poll_seconds()):
                if key.data is None:
                    for signum in wake_reader.recv(4096):
                        self._on_signal(signum)
                else:
                    self._on_messages(key.data)
            self._reap()
            self._maintain()
        signal.set_wakeup_fd(-1)
        # Further signals do not change the exit code.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
        self._listening.close()
        return self._code

    def _poll_seconds(self) -> float:
        """Returns the time until the next check is due."""
        if self._watch is not None:
            return 0.25
        misses = len(self._live()) < self._count
        if misses and not self._is_ending and time.monotonic() >= self._not_before:
            return 0.0
        ending = any(worker.kill_at for worker in self._workers.values())
        return 0.1 if ending or misses else 5.0

    def _live(self) -> list[Worker]:
        return [worker for worker in self._workers.values() if not worker.is_ending]

    def _start(self, replaces: int | None = None) -> None:
        worker = Worker(self._next_number, self.plan, self._listening, self._load,
                        self._workers.values())
        self._next_number += 1
        worker.replaces = replaces
        self._add(worker)

    def _add(self, worker: Worker) -> None:
        self._workers[worker.number] = worker
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)

    def _on_signal(self, signum: int) -> None:
        if signum in (signal.SIGINT, signal.SIGTERM):
            if self._is_ending:
                self._end_at_once()
                self._code = 128 + signum
            self._end()
        elif signum == signal.SIGHUP:
            if self._is_preloaded:
                log.warning("HUP: workers restart with the loaded code; to import it again, "
                            "restart, or leave --preload out")
            self._replace_all("HUP")
        elif signum == signal.SIGUSR1:
            _logs.reopen(self.plan)
            for worker in self._workers.values():
                worker.reopen_logs()
        elif signum == signal.SIGTTIN and self._count < WORKERS_MAX:
            self._count += 1
        elif signum == signal.SIGTTOU and self._count > 1:
            self._count -= 1
            if live := self._live():
                live[-1].end(self.plan.grace)

    def _on_messages(self, worker: Worker) -> None:
        lines, is_there = worker.messages()
        for kind, facts in lines:
            if kind == "ready":
                self._on_ready(worker, facts)
            elif kind == "stopping":
                worker.begin_stopping(self.plan.lifespan_timeout)
            elif kind == "stopped":
                worker.has_stopped()
            elif kind == "recycle":
                log.info("worker %d (pid %d) is replaced: %s", worker.number, worker.pid,
                         facts["reason"])
                self._to_replace.append(worker.number)
        if not is_there:
            self._selector.unregister(worker.channel)
            worker.channel.close()

    def _on_ready(self, worker: Worker, facts: dict[str, Any]) -> None:
        worker.become_ready()
        if worker.replaces is not None:
            before = self._workers.get(worker.replaces)
            if before is not None:
                before.end(self.plan.grace, is_replaced=True)
            worker.replaces = None
        if not self._has_announced and sum(one.is_ready for one in self._live()) >= self._count:
            self._has_announced = True
            print_banner(self.plan, self._listening.names(), facts)

    def _reap(self) -> None:
        for worker in list(self._workers.values()):
            code = worker.process.poll()
            if code is None:
                if worker.kill_at and time.monotonic() > worker.kill_at:
                    log.warning("worker %d (pid %d) has not ended in time: killed",
                                worker.number, worker.pid)
                    worker.kill()
                    worker.kill_at = None
                continue
            del self._workers[worker.number]
            self._load.give_back(worker.place)
            if worker.channel.fileno() >= 0:
                self._on_messages(worker)
            if not worker.is_ending:
                self._on_death(worker, code)
            elif code == 0:
                log.info("worker %d (pid %d) has ended", worker.number, worker.pid)
            else:
                log.warning("worker %d (pid %d) has ended: %s", worker.number, worker.pid,
                            _how_ended(code))
                if self._is_ending and worker.is_ready and (code > 0 or worker.is_stopping):
                    # The application has not ended in order.
                    self._code = self._code or 1

    def _on_death(self, worker: Worker, code: int) -> None:
        if not worker.is_ready and not self._has_announced and not self._watch:
            # It has logged why it cannot start.
            self._code = code if code > 0 else NO_START
            self._end()
            return
        if self._watch and not worker.is_ready:
            # A developer will change something.
            log.error("worker %d could not start: waiting for a change", worker.number)
            self._not_before = math.inf
            return
        log.error("worker %d (pid %d) has died: %s", worker.number, worker.pid,
                  _how_ended(code))
        if time.monotonic() - worker.started >= STABLE_SECONDS:
            self._failures = 0
        else:
            self._failures += 1
            pause = min(PAUSE_SECONDS * 2 ** (self._failures - 1), PAUSE_MAX_SECONDS)
            self._not_before = time.monotonic() + pause
        if worker.replaces in self._workers:
            log.error("worker %d goes on in its place", worker.replaces)
            self._to_replace.clear()

    def _maintain(self) -> None:
        """Starts missing workers, and continues the replacement."""
        if self._is_ending:
            return
        if self._watch is not None and (changed := self._watch.changed()):
            log.info("%s has changed", changed)
            self._not_before = 0.0
            self._replace_all("a change")
        if time.monotonic() < self._not_before:
            return
        newcomers = [worker for worker in self._live() if worker.replaces is not None]
        if len(self._live()) - len(newcomers) < self._count:
            self._start()
        elif self._to_replace and not newcomers:
            number = self._to_replace.pop(0)
            worker = self._workers.get(number)
            if worker is not None and not worker.is_ending:
                self._start(replaces=number)

    def _replace_all(self, why: str) -> None:
        log.info("workers are replaced one by one: %s", why)
        self._to_replace = [worker.number for worker in self._live() if worker.replaces is None]

    def _end(self) -> None:
        left = self._listening.own_fds()
        for worker in self._workers.values():
            worker.end(self.plan.grace, left)
        if not self._is_ending:
            self._is_ending = True
            # Workers have descriptors of their own. As long as these are open, connections would
            # be queued and never served.
            self._listening.close()

    def _end_at_once(self) -> None:
        for worker in self._workers.values():
            worker.end_at_once()
        time.sleep(FLUSH_SECONDS)
        for worker in self._workers.values():
            worker.kill()


def _how_ended(code: int) -> str:
    """Describes how a process has ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
