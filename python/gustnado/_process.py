"""One serving process: the application, its loop, signals, and the drain."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import threading
import time

from . import _loading, _logs, _loops, _privileges, _sockets, _threads
from ._asgi import scope_template
from ._gustnado import Asgi, Engine, Wsgi
from ._lifespan import Lifespan
from ._routes import CallContext
from ._wsgi import FileWrapper, template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from ._gustnado import _FolderSpec, _HandlerSpec, _SocketSpec
    from ._hangs import HangWatch
    from ._plan import Plan
    from ._shared_load import SharedLoad
    from ._slow import SlowHandlerMonitor
    from ._supervisor import Worker

    # A loop of Python, with the engine that it drives.
    _Loops = _loops.AsyncioLoop | _loops.Uvloop

log = logging.getLogger("gustnado")

STEP_SECONDS = 0.005
# A start that takes longer logs what it waits for.
START_SECONDS = 1.0
# Additional time after the shutdown time-out, before a blocked loop is killed.
CUT_SECONDS = 1.0
# Interval at which a process checks its number of requests and its memory.
CHECK_SECONDS = 1.0
# How long a worker that a signal ends waits for what its supervisor says.
TOLD_SECONDS = 0.1


class StoppedEarly(KeyboardInterrupt):
    """A signal has ended the process before it served. (Loops of asyncio let it through.)"""


class Process:
    """- `report`: called with `ready` and facts about the start once it serves, with `recycle` when
    it should be replaced, and with `stopping` and `stopped` around the application's shutdown.
    - `signals`: which end it: once in order, twice at once. In a thread that is not the main one
    none can be received.
    - `is_worker`: a supervisor says when it ends. Otherwise HUP starts a successor, which imports
      the application again."""

    def __init__(
        self, plan: Plan, report: Callable[[str, dict[str, Any]], object],
        signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
        is_worker: bool = False,
    ) -> None:
        self.plan, self.report = plan, report
        is_main = threading.current_thread() is threading.main_thread()
        self._signals = signals if is_main else ()
        self._is_worker = is_worker
        # Whether it should end; and whether by a signal, after which a second one ends it at once.
        self._ending = self._was_signalled = False
        # What its supervisor has said, until the signal of it is handled.
        self._is_told = self._ends_at_once = False
        # Until when it may still say it, after a signal that both have got.
        self._told_until = 0.0
        # Until it serves there is nothing to end in order, and a signal stops what is under way.
        self._is_starting = True
        self._start_note: threading.Timer | None = None
        self._since = time.monotonic()
        self._code = 0
        # Wakes the serving thread when it should end.
        self._wake: Callable[[], object] = lambda: None
        # What takes over, once it is ready: see `_successor`. And whether HUP came again since.
        self.successor: tuple[Worker, SharedLoad] | None = None
        self.reloads_again = False
        self._recycles = False
        # Whether another process takes its place.
        self._is_replaced = False
        self._requests_max = plan.max_requests
        if self._requests_max:
            self._requests_max += random.randint(0, plan.max_requests_jitter)
        self._engine: Engine | None = None
        self._interface = ""
        self._slow_handlers: SlowHandlerMonitor | None = None
        self._hangs: HangWatch | None = None
        self._handlers: list[_HandlerSpec] = []
        self._listening: _sockets.Listening | None = None
        # Inherited sockets that no other process serves once this one has ended.
        self._unserved_fds: list[int] = []

    @property
    def engine(self) -> Engine:
        """The engine, once `_build` has created it."""
        assert self._engine is not None
        return self._engine

    @property
    def listening(self) -> _sockets.Listening:
        """Its sockets, once they are open."""
        assert self._listening is not None
        return self._listening

    def take_over(self, fds: list[int]) -> None:
        """Makes this process drain the queues of these sockets when it ends."""
        self._unserved_fds = fds

    def be_replaced(self) -> None:
        """Notes that another process takes its place: clients of WebSockets are told to come back.
        From any thread, before it ends."""
        self._is_replaced = True

    def be_ended(self, at_once: bool = False) -> None:
        """Ends it, as its supervisor says: in order, that does not count as a signal, which the
        whole process group may have got as well. From any thread."""
        is_ending, self._ending, self._told_until = self._ending, True, 0.0
        if at_once or not is_ending:
            self._is_told, self._ends_at_once = True, at_once
            os.kill(os.getpid(), signal.SIGTERM)

    def _may_be_told(self) -> bool:
        """Whether its supervisor may say in a moment which sockets are left to it."""
        return time.monotonic() < self._told_until

    def run(self) -> int:
        """Serves until it is ended. Returns the exit code.

        Raises LoadError, LifespanError, OSError or ValueError where it cannot start."""
        if self._signals:
            # Early, since without a handler these would kill the process.
            signal.signal(signal.SIGUSR1, self._reopen_logs)
            signal.signal(signal.SIGHUP, self._on_hup)
        for signum in self._signals:
            signal.signal(signum, self._on_signal)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(self.plan.switch_interval)
        try:
            self._load_and_serve()
        except StoppedEarly:
            pass
        finally:
            # A signal has nothing left to stop, and must not interrupt the report of a failure.
            self._is_starting = False
            self._announce_wait(None)
            sys.setswitchinterval(interval)
        return self._code

    def stop(self) -> None:
        """Drains and stops it, from any thread."""
        self._ending = True
        self._wake()

    def _load_and_serve(self) -> None:
        try:
            if self.plan.settings.get("user"):
                # The application is imported without root's privileges.
                self._listening = _sockets.listen(self.plan.settings)
                _privileges.drop(self.plan)
            app = self.plan.app
            if isinstance(app, str):
                self._announce_wait("the application's import")
                app = _loading.load(app, self.plan.app_dir, self.plan.factory)
            _logs.keep()
            self._interface = interface = _loading.interface_of(app, self.plan.interface)
            if self._listening is None:
                self._listening = _sockets.listen(self.plan.settings)
            self._serve_as(interface, app)
        finally:
            if self.successor is None and self._listening is not None:
                self._listening.close()
            if self._slow_handlers is not None:
                self._slow_handlers.end()
            self._end_hang_watch()

    def _announce_wait(self, what: str | None) -> None:
        """Logs what is waited for if that takes long; `None`: nothing."""
        if self._start_note is not None:
            self._start_note.cancel()
            self._start_note = None
        if what is not None and not self.plan.quiet:
            note = threading.Timer(START_SECONDS, log.info, ("starting: waiting for %s", what))
            note.daemon = True
            note.start()
            self._start_note = note

    @property
    def was_signalled(self) -> bool:
        """Whether a signal has ended it."""
        return self._was_signalled

    def hand_over(self, successor: tuple[Worker, SharedLoad]) -> None:
        """Passes the sockets to a successor process and drains this one. From any thread."""
        self.successor = successor
        self._ending = True
        self._wake()

    def _on_hup(self, *_: object) -> None:
        if self._is_starting or self._is_worker:
            return  # What is being started is new.
        if self.successor is not None:
            # Its code may be older than this signal.
            self.reloads_again = True
        elif self._ending:
            return
        elif isinstance(self.plan.app, str):
            from . import _successor

            self.reloads_again = not _successor.start(self, self.listening)
        else:
            log.info("HUP: the application is an object of this program, which cannot be imported "
                     "again: it ends")
            self._on_signal(signal.SIGHUP)

    def _serve_as(self, interface: str, app: Any) -> None:
        if interface == "asgi":
            self._run_with_loop(app, interface)
        elif interface == "wsgi":
            self._run_wsgi(app)
        elif app.sockets() or any(is_coroutine for *_, is_coroutine, _ in app.handlers()):
            self._run_with_loop(app, interface)
        else:
            self._build(app.handlers(), app._folders, CallContext(), None)
            self._start("plain functions")
            self._run_alone()

    # --- Without a loop of Python's.

    def _run_wsgi(self, app: Callable[..., Any]) -> None:
        plan = self.plan
        host, port = _sockets.server_of(self.listening.sockets)
        environ = template(host, port, "http", plan.root_path, plan.threads, plan.workers)
        wsgi = Wsgi(app, environ, plan.root_path, FileWrapper, (plan.threads, plan.waiting_max),
                    CallContext.on_error)
        self._build([], [], CallContext(), wsgi)
        threads = [
            threading.Thread(target=wsgi.work, name=f"wsgi-{number}", daemon=True)
            for number in range(plan.threads if plan.threads > 1 else 0)
        ]
        for thread in threads:
            thread.start()
        held = "on the engine's thread" if not threads else f"on {len(threads)} threads"
        self._start(f"WSGI {held}")
        self._run_alone()
        wsgi.end()
        for thread in threads:
            # One that is held is a daemon: it ends with the process.
            thread.join(0.1)

    def _run_alone(self) -> None:
        self._wake = self.engine.alert().set
        while not self._ending:
            self.engine.run(CHECK_SECONDS)
            self._check_limits()
        while self._may_be_told():
            self.engine.turn(STEP_SECONDS)
        self._begin_drain()
        while (cut := self.engine.step_drain()) is None:
            self.engine.turn(STEP_SECONDS)
        self._log_end(cut)

    def _on_signal(self, signum: int, _frame: FrameType | None = None) -> None:
        is_told, self._is_told = self._is_told, False
        if self._ends_at_once or (self._was_signalled and not is_told):
            self._stop_at_once(signum)
        if not is_told:
            self._was_signalled = True
            if self._is_worker and not self._ending:
                self._told_until = time.monotonic() + TOLD_SECONDS
        self.stop()
        if self._is_starting:
            # (Once: a further one must not stop what this ends.)
            self._is_starting = False
            raise StoppedEarly

    # --- On a loop of Python's.

    def _run_with_loop(self, app: Any, interface: str) -> None:
        loops = _loops.choose(self.plan.loop)
        try:
            loops.loop.run_until_complete(self._serve(app, interface, loops))
        finally:
            loops.drive(None)
            # A signal that comes now finds the loop closed.
            self._wake = lambda: None
            self._engine = None
            _loops.end(loops.loop)

    async def _serve(self, app: Any, interface: str, loops: _Loops) -> None:
        ended, loop = asyncio.Event(), loops.loop
        self._wake = lambda: loop.call_soon_threadsafe(ended.set)
        if self._ending:
            ended.set()
        lifespan = Lifespan(app, self.plan.lifespan if interface == "asgi" else "off")
        if interface == "asgi":
            how = f"ASGI on {loops.name}"
            scope = scope_template(self.plan, _sockets.server_of(self.listening.sockets))
            state = lifespan.state if self.plan.lifespan != "off" else None
            asgi = Asgi(app, loop, scope, self.plan.root_path, state, CallContext.on_error,
                        self.plan.ws != "none")
            self._build([], [], CallContext(loop), asgi)
            running_calls = asgi.running_calls
        else:
            how = f"functions on {loops.name}"
            self._build(app.handlers(), app._folders, CallContext(loop), None, app.sockets())
            running_calls = self.engine.running_sockets
        # (What is wrong with a setting has been said by now. The loop's own handlers of signals
        # would wait for as long as the application's start holds it.)
        if not await self._has_started(lifespan, ended):
            return
        if self._signals:
            loop.add_signal_handler(signal.SIGUSR1, self._reopen_logs)
            loop.add_signal_handler(signal.SIGHUP, self._on_hup)
        for signum in self._signals:
            loop.add_signal_handler(signum, self._on_signal, signum)
        self._start(how)
        loops.drive(self.engine)
        while not ended.is_set():
            try:
                await asyncio.wait_for(ended.wait(), CHECK_SECONDS)
            except asyncio.TimeoutError:
                self._check_limits()
        while self._may_be_told():
            await asyncio.sleep(STEP_SECONDS)
        self._begin_drain()
        until = loop.time() + self.plan.grace
        while (cut := self.engine.step_drain()) is None:
            await asyncio.sleep(STEP_SECONDS)
        self._log_end(cut)
        loops.drive(None)
        await self._finish_calls(running_calls, until)
        await self._stop(lifespan)

    async def _finish_calls(self, running_calls: Callable[[], int], until: float) -> None:
        """Waits for what the application does after its responses and WebSockets, such as its
        background tasks."""
        loop = asyncio.get_running_loop()
        while (count := running_calls()) and loop.time() < until:
            # Steps that have paused resume in a turn.
            loop.call_soon(self.engine.turn, 0.0)
            await asyncio.sleep(STEP_SECONDS)
        if count:
            log.warning("the time for ending was over: %d calls of the application were cancelled",
                        count)

    async def _has_started(self, lifespan: Lifespan, ended: asyncio.Event) -> bool:
        """Runs the application's startup. Returns whether it succeeded before a stop."""
        self._announce_wait("the application's lifespan")
        starting = asyncio.ensure_future(lifespan.start())
        # (A signal may have ended it: that is known.)
        starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        ending = asyncio.ensure_future(ended.wait())
        both: set[asyncio.Future[Any]] = {starting, ending}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if self._ending and not starting.done():
            starting.cancel()
            return False
        await starting
        return True

    async def _stop(self, lifespan: Lifespan) -> None:
        """Shuts the application down, in a time that excludes the drain."""
        seconds = self.plan.lifespan_timeout
        if self.successor is not None:
            # Signals that the loop receives are lost with it, and this process goes on as a
            # supervisor. From here on they are noted at once, and those that the loop has still
            # to read are noted as well.
            self._wake = lambda: None
            loop, signums = asyncio.get_running_loop(), [*self._signals, signal.SIGHUP]
            for signum in signums:
                loop.add_signal_handler(signum, self._note_signal, signum)
                signal.signal(signum, self._note_signal)
            await asyncio.sleep(STEP_SECONDS)
            for signum in signums:
                loop.remove_signal_handler(signum)
                signal.signal(signum, self._note_signal)
            await asyncio.sleep(STEP_SECONDS)
        self.report("stopping", {})
        cut = threading.Timer(seconds + CUT_SECONDS, os._exit, [1])
        cut.daemon = True
        if self.successor is None and self._signals:
            # (Otherwise others serve, and end with this process, or it is a program's with a thread
            # that serves.)
            cut.start()
        if not await lifespan.stop(seconds):
            self._code = 1
        cut.cancel()
        self.report("stopped", {})

    # --- Both.

    def _build(
        self, handlers: list[_HandlerSpec], folders: list[_FolderSpec], context: CallContext,
        application: Asgi | Wsgi | None, sockets: Sequence[_SocketSpec] = (),
    ) -> None:
        """Creates the engine, which validates the settings. It serves with its first turn."""
        folders = [*folders, *((path, one, []) for path, one in self.plan.static.items())]
        settings = self.plan.on(self.listening).engine_settings()
        self._engine = Engine(settings, handlers, folders, context, application,
                              self.plan.workers, list(sockets))
        for note in self.engine.notes():
            log.info("%s", note)
        self._handlers = handlers

    def _start(self, how: str) -> None:
        """Announces that it serves, and starts the watch of its thread."""
        self._is_starting = False
        self._announce_wait(None)
        if self.plan.shared_load is not None:
            self.engine.share_load(*self.plan.shared_load)
        if self.plan.shared_stats is not None and self._has_pages():
            self.engine.share_stats(*self.plan.shared_stats)
        if self.plan.slow_handler > 0:
            from ._slow import SlowHandlerMonitor

            alert, thread = self.engine.alert(), threading.get_ident()
            limit = self.plan.slow_handler
            self._slow_handlers = SlowHandlerMonitor(alert, limit, thread, self._handlers)
        if self.plan.timeout:
            from ._hangs import HangWatch

            self._hangs = HangWatch(self.engine, self.plan.timeout, CHECK_SECONDS)
        names = self.listening.names()
        self.report("ready", {"names": names, "how": how, "interface": self._interface})

    def _has_pages(self) -> bool:
        """Returns whether there are pages with counters: otherwise nobody adds them up."""
        return any(self.plan.settings.get(name) for name in ("metrics-path", "stats-path"))

    def _end_hang_watch(self) -> None:
        if self._hangs is not None:
            self._hangs.end()
            self._hangs = None

    def _note_signal(self, signum: int, _frame: FrameType | None = None) -> None:
        """Notes a signal for the supervisor that this process becomes. It may come twice."""
        if signum == signal.SIGHUP:
            self.reloads_again = True
        else:
            self._was_signalled = True

    def _reopen_logs(self, *_: object) -> None:
        """USR1: reopens the logs after a rotation."""
        _logs.reopen(self.plan)
        if self._engine is None:
            return  # It opens the log at its start.
        try:
            self._engine.reopen_logs()
        except OSError as error:
            log.error("USR1: %s; the old file is written on", error)

    def _stop_at_once(self, signum: int) -> None:
        if self._engine is not None:
            self._engine.flush_logs()
        os._exit(128 + signum)

    def _begin_drain(self) -> None:
        self._end_hang_watch()
        if self.successor is None:
            # The engine has its own descriptors, and drains their queues.
            for fd in [*self.listening.own_fds(), *self._unserved_fds]:
                self.engine.take_socket_over(fd)
            self.listening.close()
        if self._is_replaced or self.successor is not None:
            self.engine.announce_restart()
        self.engine.begin_drain(self.plan.grace)

    def _log_end(self, cut: int) -> None:
        self.engine.flush_logs()
        if cut:
            log.warning("the time for ending was over: %d connections were cut", cut)

    def _check_limits(self) -> None:
        """Whether the process has reached a limit of requests, memory or age."""
        if self._hangs is not None:
            self._hangs.note()
        if self._recycles:
            return
        reason = None
        if self._requests_max and self.engine.stats()["requests"] >= self._requests_max:
            reason = f"it has served {self.engine.stats()['requests']} requests"
        elif self.plan.max_worker_rss and (memory := _threads.memory()) > self.plan.max_worker_rss:
            reason = f"it has {memory >> 20} MB of memory"
        elif 0 < self.plan.max_lifetime <= (age := time.monotonic() - self._since):
            reason = f"it has served for {age:.0f} s"
        if reason:
            self._recycles = True
            self.report("recycle", {"reason": reason})
