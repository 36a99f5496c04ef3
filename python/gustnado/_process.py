"""One process that serves: the application, its loop, signals, and the end in order."""

import asyncio
import logging
import os
import random
import signal
import sys
import threading

from . import _loading, _loops, _sockets
from ._gustnado import Asgi, Engine, Wsgi
from ._lifespan import Lifespan
from ._routes import Ground
from ._wsgi import FileWrapper, template

log = logging.getLogger("gustnado")

STEP_SECONDS = 0.005
# A start that takes longer than this is mentioned.
START_SECONDS = 3.0
# What holds the loop after the time for its shutdown is cut by force after so much more.
CUT_SECONDS = 1.0
# How often a process looks at itself: how many requests it has answered, how much memory it has.
LOOK_SECONDS = 1.0


class Process:
    """- `told`: called with `ready` once it serves, with what to say of it, and with `recycle` when
    it should be replaced.
    - `signals`: which end it: once in order, twice at once.
    - `reloads`: whether HUP has another process take over, which imports the application anew."""

    def __init__(self, plan, told, signals=(signal.SIGINT, signal.SIGTERM), reloads=True):
        self.plan, self.told, self._signals = plan, told, signals
        self._reloads = reloads
        # Whether it is to end; and whether by a signal, of which a second one means at once.
        self._ending = self._was_told = self._imports = False
        self._code = 0
        # Has the thread that serves notice that it is to end.
        self._wake = lambda: None
        # What takes over, once it is ready: see `_successor`. And whether HUP came again since.
        self.successor, self.reloads_again = None, False
        self._recycles = False
        self._requests_max = plan.max_requests
        if self._requests_max:
            self._requests_max += random.randint(0, plan.max_requests_jitter)
        self.engine = None
        self._interface = None
        self._lookout = None
        self.listening = None
        # Sockets of others that nobody else will serve once this process has ended.
        self._left = []

    def take_over(self, numbers):
        """Has this process serve what waits at these sockets, when it ends: nobody else will."""
        self._left = numbers

    def run(self):
        """Serves until it is ended. Returns the exit code.

        Raises LoadError, LifespanError, OSError or ValueError where it cannot start."""
        # From now on: without a handler, these would end the process.
        signal.signal(signal.SIGUSR1, self._reopen_logs)
        signal.signal(signal.SIGHUP, self._on_hup)
        for number in self._signals:
            signal.signal(number, self._on_signal)
        sys.setswitchinterval(self.plan.switch_interval)
        app = self._application()
        if self._ending:
            return 0
        self._interface = interface = _loading.interface_of(app, self.plan.interface)
        self.listening = _sockets.listen(self.plan.settings)
        try:
            self._serve_as(interface, app)
        finally:
            if self.successor is None:
                self.listening.close()
            if self._lookout is not None:
                self._lookout.end()
        return self._code

    def _application(self):
        app = self.plan.app
        try:
            # While it is imported there is nothing to end, and a signal stops that.
            self._imports = isinstance(app, str)
            if self._imports:
                app = _loading.load(app, self.plan.app_dir, self.plan.factory)
                self._imports = False
        except KeyboardInterrupt:
            if not self._ending:
                raise
        return app

    @property
    def was_told(self):
        """Whether a signal has ended it."""
        return self._was_told

    def hand_over(self, successor):
        """Has another process go on with the sockets, and this one end in order. From any
        thread."""
        self.successor = successor
        self._ending = True
        self._wake()

    def _on_hup(self, *_):
        if self.engine is None or not self._reloads:
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
                     "anew: it ends")
            self._on_signal(signal.SIGHUP)

    def _serve_as(self, interface, app):
        if interface == "asgi":
            self._run_with_loop(app, interface)
        elif interface == "wsgi":
            self._run_wsgi(app)
        elif any(is_coroutine for *_, is_coroutine in app.handlers()):
            self._run_with_loop(app, interface)
        else:
            self._start(app.handlers(), app._folders, Ground(), None, "plain functions")
            self._run_alone()

    # --- Without a loop of Python's.

    def _run_wsgi(self, app):
        plan = self.plan
        host, port = _sockets.server_of(self.listening.sockets)
        environ = template(host, port, "http", plan.root_path, plan.threads, plan.workers)
        waiting_max = plan.waiting_max if plan.threads > 1 else None
        wsgi = Wsgi(app, environ, plan.root_path, FileWrapper, waiting_max, Ground.on_error)
        threads = [
            threading.Thread(target=wsgi.work, name=f"wsgi-{number}", daemon=True)
            for number in range(plan.threads if plan.threads > 1 else 0)
        ]
        for thread in threads:
            thread.start()
        held = "on the engine's thread" if not threads else f"on {len(threads)} threads"
        self._start([], [], Ground(), wsgi, f"WSGI {held}")
        self._run_alone()
        wsgi.end()
        for thread in threads:
            # One that is held is a daemon: it ends with the process.
            thread.join(0.1)

    def _run_alone(self):
        self._wake = self.engine.alert().set
        while not self._ending:
            self.engine.run(LOOK_SECONDS)
            self._look()
        self._begin_drain()
        while (cut := self.engine.step_drain()) is None:
            self.engine.turn(STEP_SECONDS)
        self._say_end(cut)

    def _on_signal(self, number, _frame=None):
        if self._was_told:
            self._stop_at_once(number)
        self._was_told = self._ending = True
        self._wake()
        if self._imports:
            raise KeyboardInterrupt

    # --- On a loop of Python's.

    def _run_with_loop(self, app, interface):
        loops = _loops.choose(self.plan.loop)
        try:
            loops.loop.run_until_complete(self._serve(app, interface, loops))
        finally:
            if self.successor is not None:
                # Until the supervisor hears them, which this process becomes.
                signal.pthread_sigmask(signal.SIG_BLOCK, [*self._signals, signal.SIGHUP,
                                                          signal.SIGUSR1])
            loops.drive(None)
            self.engine = None
            _end_loop(loops.loop)

    async def _serve(self, app, interface, loops):
        ended, loop = asyncio.Event(), loops.loop
        self._wake = lambda: loop.call_soon_threadsafe(ended.set)
        if self._ending:
            ended.set()
        lifespan = Lifespan(app, self.plan.lifespan if interface == "asgi" else "off")
        # (The loop's own handlers would wait for as long as the application's start holds it.)
        if not await self._has_started(lifespan, ended):
            return
        for number in self._signals:
            loop.add_signal_handler(number, self._on_signal, number)
        loop.add_signal_handler(signal.SIGUSR1, self._reopen_logs)
        loop.add_signal_handler(signal.SIGHUP, self._on_hup)
        if interface == "asgi":
            scope = _scope(self.plan, _sockets.server_of(self.listening.sockets))
            state = lifespan.state if self.plan.lifespan != "off" else None
            asgi = Asgi(app, loop, scope, state, Ground.on_error)
            self._start([], [], Ground(loop), asgi, f"ASGI on {loops.name}")
        else:
            how = f"functions on {loops.name}"
            self._start(app.handlers(), app._folders, Ground(loop), None, how)
        loops.drive(self.engine)
        while not ended.is_set():
            try:
                await asyncio.wait_for(ended.wait(), LOOK_SECONDS)
            except asyncio.TimeoutError:
                self._look()
        self._begin_drain()
        while (cut := self.engine.step_drain()) is None:
            await asyncio.sleep(STEP_SECONDS)
        self._say_end(cut)
        loops.drive(None)
        await self._stop(lifespan)

    async def _has_started(self, lifespan, ended):
        """Whether the application is told that it starts, and does, before it is to end."""
        starting = asyncio.ensure_future(lifespan.start())
        ending = asyncio.ensure_future(ended.wait())
        wait = asyncio.wait({starting, ending}, timeout=START_SECONDS,
                            return_when=asyncio.FIRST_COMPLETED)
        done, _ = await wait
        if not done:
            log.info("waiting for the application's lifespan to start")
            await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if self._ending and not starting.done():
            starting.cancel()
            return False
        await starting
        return True

    async def _stop(self, lifespan):
        """Has the application end, in a time that answers have no part in."""
        seconds = self.plan.lifespan_timeout
        self.told("drained", {})
        cut = threading.Timer(seconds + CUT_SECONDS, os._exit, [1])
        cut.daemon = True
        cut.start()
        if not await lifespan.stop(seconds):
            self._code = 1
        cut.cancel()

    # --- Both.

    def _start(self, handlers, folders, ground, application, how):
        folders = [*folders, *self.plan.static.items()]
        settings = self.plan.on(self.listening).engine_settings()
        self.engine = Engine(settings, handlers, folders, ground, application)
        if self.plan.shared_load is not None:
            self.engine.share_load(*self.plan.shared_load)
        for note in self.engine.notes():
            log.info("%s", note)
        if self.plan.slow_handler > 0:
            from ._slow import Lookout

            alert, thread = self.engine.alert(), threading.get_ident()
            self._lookout = Lookout(alert, self.plan.slow_handler, thread, handlers)
        names = self.listening.names()
        self.told("ready", {"names": names, "how": how, "interface": self._interface})

    def _reopen_logs(self, *_):
        """USR1: whoever rotates logs has moved the old one away."""
        if self.engine is None:
            return  # It will open it anew in any case.
        try:
            self.engine.reopen_logs()
        except OSError as error:
            log.error("USR1: %s; the old file is written on", error)

    def _stop_at_once(self, number):
        if self.engine is not None:
            self.engine.flush_logs()
        os._exit(128 + number)

    def _begin_drain(self):
        if self.successor is None:
            # The engine has descriptors of its own, and serves what waits there.
            for number in [*self.listening.own_numbers(), *self._left]:
                self.engine.take_socket_over(number)
            self.listening.close()
        self.engine.begin_drain(self.plan.grace)

    def _say_end(self, cut):
        self.engine.flush_logs()
        if cut:
            log.warning("the time for ending was over: %d connections were cut", cut)

    def _look(self):
        """Whether the process has done its work, or become too large."""
        if self._recycles:
            return
        reason = None
        if self._requests_max and self.engine.stats()["requests"] >= self._requests_max:
            reason = f"it has answered {self.engine.stats()['requests']} requests"
        elif self.plan.max_memory and (memory := _memory()) > self.plan.max_memory:
            reason = f"it has {memory >> 20} MB of memory"
        if reason:
            self._recycles = True
            self.told("recycle", {"reason": reason})


def _end_loop(loop):
    """As asyncio.run does: what is left is cancelled."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _scope(plan, server):
    """The scope of a request but for what differs.

    What each request has is in it already, so that its copies have room for all of it.
    """
    return {
        **dict.fromkeys(("http_version", "method", "path", "raw_path", "query_string", "headers")),
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "scheme": "http",
        "server": server,
        "client": None,
        "root_path": plan.root_path,
        "extensions": {"http.response.pathsend": {}},
    }


def _memory():
    """Bytes of the process that are its own and in memory."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
