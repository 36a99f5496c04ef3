"""A plugin for pytest that runs uvicorn's cases of HTTP and WebSocket against this engine: real
sockets and a real loop replace the transport and the loop of uvicorn's tests.

`GustnadoProtocol` has of uvicorn's protocol classes what those cases use. Those that cannot pass
are listed in `uvicorn_differs`; a case with another result fails the run."""

import asyncio
import select
import socket
import threading
import time
from types import SimpleNamespace

import pytest
import uvicorn
import uvicorn.protocols.http.h11_impl as of_h11
import uvicorn.protocols.http.httptools_impl as of_httptools
from gustnado._plan import Plan
from gustnado._process import Process
from uvicorn_differs import DIFFERS, MAY_FAIL, OF_WEBSOCKET

# The time for a response; where nothing more comes for QUIET_SECONDS, no more is expected.
ANSWER_SECONDS, QUIET_SECONDS = 5.0, 0.5
# Time goes by faster than the cases say, which wait for five seconds.
FASTER = 2
# The most that the setting takes.
HEAD_BYTES_MAX = 65_535


class Running:
    """What serves in a process, on a thread."""

    def __init__(self, app, state=None, settings=None, root_path="", port=0, lifespan=None,
                 ws="auto"):
        settings = {"host": "127.0.0.1", "port": port, **(settings or {})}
        lifespan = lifespan or ("on" if state else "off")
        plan = Plan(app, "asgi", settings=settings, loop="asyncio", root_path=root_path,
                    grace=2.0, lifespan=lifespan, ws=ws)
        self._ready, self.address = threading.Event(), None
        self._process = Process(plan, self._told, signals=())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(ANSWER_SECONDS), "the engine has not started"

    def _told(self, kind, told):
        if kind == "ready":
            host, _, port = told["names"][0].removeprefix("http://").strip("/").rpartition(":")
            self.address = (host, int(port))
            self._ready.set()

    def _run(self):
        self._process.run()

    def begin_end(self):
        self._process.stop()

    def end(self):
        self.begin_end()
        self._thread.join(ANSWER_SECONDS)


class GustnadoProtocol:
    """One connection to an engine of its own, which serves the case's application."""

    def __init__(self, config, server_state, app_state, _loop):
        self._app, self._answers_wanted = config.app, 0
        self._calls_begun, self._calls_ended = 0, 0
        self._state, self.scope = app_state, None
        self.transport = Transport()
        self.loop = SimpleNamespace(run_one=self._run_one, run_later=self._run_later)
        settings = {"timeout-keep-alive": f"{config.timeout_keep_alive * 1000 // FASTER:.0f}ms"}
        if config.h11_max_incomplete_event_size:
            settings["limit-head-bytes"] = min(
                config.h11_max_incomplete_event_size, HEAD_BYTES_MAX)
        ws = "none" if config.ws == "none" else "auto"
        self._running = Running(self._call, app_state, settings, config.root_path, ws=ws)
        opened.append(self)

    async def _call(self, scope, receive, send):
        if scope["type"] == "lifespan":
            scope["state"].update(self._state)
            await receive()
            await send({"type": "lifespan.startup.complete"})
            return
        self.scope = scope
        self._calls_begun += 1
        try:
            return await self._app(scope, receive, send)
        finally:
            self._calls_ended += 1

    def connection_made(self, transport):
        # (uvicorn's keeps what is written; this one is a socket.)
        self.transport.connect(self._running.address)

    def data_received(self, data):
        self.transport.send(data)

    def eof_received(self):
        self.transport.link.shutdown(socket.SHUT_WR)

    def connection_lost(self, _error):
        self.transport.link.close()

    def shutdown(self):
        self._running.begin_end()
        self.transport.quiet_seconds = 1.0

    async def _run_one(self):
        """Waits until one more response has come, and its application's call has ended."""
        self._answers_wanted += 1
        is_answered = self.transport.receive_answer()
        deadline = time.monotonic() + ANSWER_SECONDS
        # No application is called for the engine's own responses.
        while self._calls_ended < (self._calls_begun if is_answered else self._answers_wanted):
            time.sleep(0.002)
            if time.monotonic() > deadline:
                return

    def _run_later(self, with_delay):
        time.sleep(with_delay / FASTER)

    def end(self):
        self.transport.end()
        self._running.end()


class HttpToolsProtocol(GustnadoProtocol):
    """By this name some cases are skipped."""


class Server:
    """What one case runs on a thread of its own."""

    def __init__(self, config):
        self.config, self.should_exit, self.started = config, False, False
        self._running = None
        self.server_state = SimpleNamespace(connections=set())

    def run(self):
        running = Running(self.config.app, port=self.config.port)
        while not self.should_exit:
            time.sleep(0.01)
        running.end()

    async def serve(self, sockets=None):
        config = self.config

        async def call(scope, receive, send):
            # (Some applications return an awaitable that is no coroutine.)
            return await config.app(scope, receive, send)

        self._running = await asyncio.to_thread(
            Running, call, settings=settings_of_websockets(config), port=config.port,
            lifespan=config.lifespan)
        self.started = True

    async def shutdown(self):
        running, self._running = self._running, None
        if running is not None:
            await asyncio.to_thread(running.end)


def settings_of_websockets(config):
    """The engine's settings by those of uvicorn that the cases of WebSocket use."""
    found = {"ws-message-bytes-max": config.ws_max_size, "ws-deflate":
             "on" if config.ws_per_message_deflate else "off"}
    if not config.server_header:
        found["server-name"] = ""
    for name, seconds in (("ws-ping", config.ws_ping_interval),
                          ("ws-ping-timeout", config.ws_ping_timeout)):
        if seconds:
            found[name] = f"{seconds * 1000:.0f}ms"
    return found


class GustnadoWebSocket:
    """What stands for uvicorn's protocols of WebSocket, where a case only passes it on."""


class Transport:
    """The client's side: what the cases look at."""

    def __init__(self):
        self.link, self._received, self._whole, self._ended = None, b"", 0, False
        self._methods, self.quiet_seconds = [], QUIET_SECONDS

    def connect(self, address):
        self.link = socket.create_connection(address, ANSWER_SECONDS)

    def send(self, data):
        for line in data.split(b"\r\n"):
            if line.endswith((b" HTTP/1.1", b" HTTP/1.0")):
                self._methods.append(line.split()[0])
        try:
            self.link.sendall(data)
        except OSError:
            self._ended = True  # It has refused what came before.

    @property
    def buffer(self):
        """Returns the responses: as many as were waited for, or all that come."""
        if not self._whole:
            self._read(QUIET_SECONDS)
        return self._received[:self._whole or None]

    def clear_buffer(self):
        self._received, self._whole = self._received[self._whole:], 0

    def is_closing(self):
        self._read(self.quiet_seconds)
        return self._ended

    def receive_answer(self):
        """Reads until one more response is complete, or the connection has ended."""
        deadline = time.monotonic() + ANSWER_SECONDS
        method = self._methods.pop(0) if self._methods else b"GET"
        while not self._ended and time.monotonic() < deadline:
            length = answer_length(self._received[self._whole:], method)
            if length:
                self._whole += length
                return True
            self._read(QUIET_SECONDS)
            if self.link.fileno() < 0:
                return False
        return self._ended

    def _read(self, seconds):
        while not self._ended and self.link.fileno() >= 0:
            if not select.select([self.link], [], [], seconds)[0]:
                return
            try:
                piece = self.link.recv(1 << 16)
            except OSError:
                piece = b""
            self._received += piece
            self._ended = not piece
            if not self._ended and self._received.count(b"\r\n\r\n"):
                seconds = 0.005

    def end(self):
        if self.link is not None:
            self.link.close()


def answer_length(data, method):
    """Returns the length of the first final response with its interim ones; None: not complete."""
    head, blank, rest = data.partition(b"\r\n\r\n")
    if not blank:
        return None
    begun = len(head) + 4
    status, fields = head.split()[1], head.lower()
    if status.startswith(b"1"):
        length = answer_length(rest, method)
        return begun + length if length else None
    if method == b"HEAD" or status in (b"204", b"304"):
        return begun
    if b"\r\ntransfer-encoding: chunked" in fields:
        at = 0 if rest.startswith(b"0\r\n\r\n") else rest.find(b"\r\n0\r\n\r\n") + 2
        return begun + at + 5 if at != 1 else None
    _, name, value = fields.partition(b"\r\ncontent-length:")
    length = begun + int(value.split(b"\r\n")[0]) if name else begun
    return length if len(data) >= length else None


uvicorn.Server = Server
of_h11.H11Protocol = GustnadoProtocol
of_httptools.HttpToolsProtocol = HttpToolsProtocol
opened = []


@pytest.fixture(autouse=True)
def ended_protocols():
    yield
    while opened:
        opened.pop().end()


@pytest.fixture
def http_protocol_cls():
    return GustnadoProtocol


@pytest.fixture
def ws_protocol_cls(request):
    return GustnadoWebSocket if is_of_websocket(request.node) else "none"


def is_of_websocket(item):
    return item.module.__name__.endswith("test_websocket")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def unused_tcp_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def pytest_collection_modifyitems(items):
    lists = {False: DIFFERS, True: OF_WEBSOCKET}
    gone = {(kind, name) for kind in set(map(is_of_websocket, items)) for name in lists[kind]}
    for item in items:
        differs = lists[is_of_websocket(item)]
        if item.name in MAY_FAIL:
            item.add_marker(pytest.mark.xfail(reason=MAY_FAIL[item.name], strict=False))
        for name in {item.name, item.originalname} & set(differs):
            gone.discard((is_of_websocket(item), name))
            item.add_marker(pytest.mark.xfail(reason=differs[name], strict=True))
    if gone:
        names = sorted(name for _, name in gone)
        raise pytest.UsageError(f"uvicorn_differs names cases that are not there: {names}")
