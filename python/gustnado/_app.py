"""An application: functions and folders by path."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable

from . import _routes
from ._errors import ClientDisconnected
from ._gustnado import Response, canonical_route
from ._middleware import Middleware
from ._routes import SocketOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike
    from typing import Literal, TypedDict, TypeVar, overload

    from typing_extensions import Unpack

    from ._gustnado import Writer, _Fields, _FolderSpec, _HandlerSpec, _SocketSpec
    from ._server import Server
    from ._settings import FolderSettings, Settings

    # Any function may be a handler: it takes the request, named parts of the path, both or nothing.
    _Function = TypeVar("_Function", bound=Callable[..., object])
    _BodyPolicy = Literal["stream", "memory", "spool"]
    _Piece = str | bytes | bytearray | memoryview

    class _RouteOptions(TypedDict, total=False):
        """The keyword arguments of `App.route`."""

        merge_slashes: bool
        exempt: bool
        limit_concurrency: int | None
        body: _BodyPolicy | None
        preload: Sequence[str]


class App:
    """Handlers by path, and the server that runs them.

    A handler takes the request, named parts of its path, both or nothing, and returns text, bytes,
    a dictionary or list (JSON), None (204), a pair of a status and one of these, or a `Response`.
    """

    def __init__(self) -> None:
        # Of each handler: method, path, function, and the options of `route`.
        self._handlers: list[tuple[
            str | None, str, Callable[..., object], bool, bool, int, _BodyPolicy | None,
            list[str]]] = []
        # Path, folder and settings of its own.
        self._folders: list[_FolderSpec] = []
        self._sockets: list[tuple[str, Callable[..., object], SocketOptions]] = []
        self._middleware = Middleware()
        # Servers that `run` has started.
        self._servers: list[Server] = []

    def route(
        self, path: str, method: str | None = None, *, merge_slashes: bool = True,
        exempt: bool = False, limit_concurrency: int | None = None,
        body: _BodyPolicy | None = None, preload: Sequence[str] = (),
    ) -> Callable[[_Function], _Function]:
        """Adds a handler for a method, or for all that have none of their own. It is a decorator.

        - `path`: begins with a slash. `{name}` is one segment, `{*rest}` the rest.
        - `method`: such as `"OPTIONS"`.
        - `merge_slashes`: whether the rest that `{*rest}` matches loses its empty segments.
        - `exempt`: whether the handler runs at once, however many the setting `limit_concurrency`
          allows.
        - `limit_concurrency`: how many handlers of the path run at a time, whatever the setting
          allows; others wait, or get 503. None: no limit of its own.
        - `body`: where whole bodies are kept, in place of `body_policy`: `"memory"`, `"spool"` (in
          memory up to 1 MiB, else on the disk), or `"stream"`: nowhere.
        - `preload`: what the page needs, such as `["/app.css; as=style"]`. A GET gets it in early
          hints (103) while the handler works, and with the response.

        Raises `ValueError` for a path that no request can have, and `TypeError` for a function
        whose parameters do not fit it.
        """
        _routes.check(path)
        handlers_max = _routes.limit(limit_concurrency)
        links = _routes.links(preload)

        def add(function: _Function) -> _Function:
            added = (method, path, function, merge_slashes, exempt, handlers_max, body, links)
            _routes.handler(*added)
            self._handlers.append(added)
            return function

        return add

    def get(
        self, path: str, **options: Unpack[_RouteOptions]
    ) -> Callable[[_Function], _Function]:
        """Adds a handler for GET. HEAD gets the same without the content.

        - `options`: those of `route`.
        """
        return self.route(path, "GET", **options)

    def post(
        self, path: str, **options: Unpack[_RouteOptions]
    ) -> Callable[[_Function], _Function]:
        """Adds a handler for POST.

        - `options`: those of `route`.
        """
        return self.route(path, "POST", **options)

    def put(
        self, path: str, **options: Unpack[_RouteOptions]
    ) -> Callable[[_Function], _Function]:
        """Adds a handler for PUT.

        - `options`: those of `route`.
        """
        return self.route(path, "PUT", **options)

    def patch(
        self, path: str, **options: Unpack[_RouteOptions]
    ) -> Callable[[_Function], _Function]:
        """Adds a handler for PATCH.

        - `options`: those of `route`.
        """
        return self.route(path, "PATCH", **options)

    def delete(
        self, path: str, **options: Unpack[_RouteOptions]
    ) -> Callable[[_Function], _Function]:
        """Adds a handler for DELETE.

        - `options`: those of `route`.
        """
        return self.route(path, "DELETE", **options)

    def websocket(
        self, path: str, *, subprotocols: Sequence[str] = (), origins: Sequence[str] = (),
        message_bytes_max: int | None = None, merge_slashes: bool = True,
    ) -> Callable[[_Function], _Function]:
        """Adds a handler for WebSockets: a coroutine function of the `WebSocket`, and of named
        parts of the path. It is a decorator.

        The WebSocket is open when the handler is called, and is closed when it returns. What
        `before` has added runs before it is opened, with the request. The path may have a handler
        for GET, too.

        - `path`: as that of `route`.
        - `subprotocols`: those that the handler speaks, the best one first.
        - `origins`: pages that may open one besides those of the same host, such as
          `["https://example.org"]`; `["*"]`: all. Clients that are no browsers are not asked.
        - `message_bytes_max`: a longer message closes with 1009. None: the setting
          `ws_message_bytes_max`.
        - `merge_slashes`: as that of `route`.

        Raises `ValueError` for a path that no request can have, and `TypeError` for another kind
        of function, or one whose parameters do not fit the path.
        """
        _routes.check(path)
        options = SocketOptions(subprotocols, origins, message_bytes_max, merge_slashes)

        def add(function: _Function) -> _Function:
            _routes.socket(path, function, options)
            self._sockets.append((path, function, options))
            return function

        return add

    def files(
        self, path: str, folder: str | PathLike[str], **settings: Unpack[FolderSettings]
    ) -> App:
        """Serves a folder below a path, and returns the application. The engine sends the files,
        without Python.

        - `settings`: of this folder, in place of the server's: `listing="on"`, `spa="index.html"`,
          `compress="on"`. Those of `run` that folders have, by the same names.

        Raises ValueError for a setting that a folder cannot have."""
        canonical_route(path or "/")
        own = []
        if settings:
            from ._plan import folder_settings

            own = folder_settings(settings)
        self._folders.append((path, str(folder), own))
        return self

    if TYPE_CHECKING:

        @overload
        def before(self, function: _Function, *, under: str = "/") -> _Function: ...
        @overload
        def before(
            self, function: None = None, *, under: str = "/"
        ) -> Callable[[_Function], _Function]: ...

    def before(
        self, function: _Function | None = None, *, under: str = "/"
    ) -> _Function | Callable[[_Function], _Function]:
        """Adds a function that is called with each request to a handler below a path, before it.
        It is a decorator, with or without arguments.

        What it returns is the response, unless it is None. Files that the engine serves never
        enter Python.

        - `under`: the path below which it is called, by whole segments.
        """
        return self._add_middleware(self._middleware.before, function, under)

    if TYPE_CHECKING:

        @overload
        def after(self, function: _Function, *, under: str = "/") -> _Function: ...
        @overload
        def after(
            self, function: None = None, *, under: str = "/"
        ) -> Callable[[_Function], _Function]: ...

    def after(
        self, function: _Function | None = None, *, under: str = "/"
    ) -> _Function | Callable[[_Function], _Function]:
        """Adds a function that is called with each such request and its `Response`. It is a
        decorator, with or without arguments.

        It may change the response. What it returns replaces it, unless it is None.

        - `under`: the path below which it is called, by whole segments.
        """
        return self._add_middleware(self._middleware.after, function, under)

    def _add_middleware(
        self, add: Callable[[Callable[..., object], str], None], function: _Function | None,
        under: str,
    ) -> _Function | Callable[[_Function], _Function]:
        def decorate(decorated: _Function) -> _Function:
            canonical_route(under)
            add(decorated, under)
            return decorated

        return decorate if function is None else decorate(function)

    def handlers(self) -> list[_HandlerSpec]:
        """Returns all handlers with their middleware, as the engine takes them."""
        around = self._middleware.around
        return [
            _routes.handler(
                method, path, around(path, function), merges, exempt, most, body, links)
            for method, path, function, merges, exempt, most, body, links in self._handlers
        ]

    def sockets(self) -> list[_SocketSpec]:
        """Returns all handlers of WebSockets, as the engine takes them."""
        return [
            _routes.socket(path, function, options, self._middleware.guard(path))
            for path, function, options in self._sockets
        ]

    def run(self, **settings: Unpack[Settings]) -> None:
        """Serves until Ctrl-C or TERM, or `stop`, then lets responses finish.

        With several `workers`, each is a process that begins as a copy of this one. Where it cannot
        start, the program exits with 1 or 2.

        - `settings`: the flags of `gustnado run`: `port=8000, timeout_keep_alive="30s"`.
        """
        from . import _server

        server = _server.made(self, settings)
        self._servers.append(server)
        try:
            server.run()
        finally:
            self._servers.remove(server)

    def stop(self) -> None:
        """Drains and stops what `run` serves, from any thread. Returns at once."""
        for server in list(self._servers):
            server.stop()


def stream(
    pieces: Iterable[_Piece] | AsyncIterable[_Piece], *, status: int = 200,
    headers: _Fields | None = None, content_type: str | None = None,
) -> Response:
    """Returns a response with an iterable, plain or asynchronous, of bytes or text.

    For coroutine functions. When the client disconnects, the iterable is closed.

    - `status`: 200 to 999.
    - `headers`: a dictionary, or pairs.
    """
    import asyncio

    response, writer = Response.open(status, headers, content_type)
    task = asyncio.get_running_loop().create_task(_send(pieces, writer, _handler_name()))
    _senders.add(task)
    task.add_done_callback(_senders.discard)
    # A task that waits for its next piece would otherwise wait for ever.
    writer.when_lost(task.cancel)
    return response


# The loop holds its tasks weakly.
_senders: set[asyncio.Task[None]] = set()


def _handler_name() -> str:
    """The name of a task or function in the log: a task of a handler has its coroutine's."""
    import asyncio

    task = asyncio.current_task()
    coroutine = None if task is None else task.get_coro()
    name: str = getattr(coroutine, "__qualname__", "a stream")
    return name


async def _send(
    pieces: Iterable[_Piece] | AsyncIterable[_Piece], writer: Writer, name: str
) -> None:
    import asyncio

    try:
        if isinstance(pieces, AsyncIterable):
            async for piece in pieces:
                if not await _write(writer, piece):
                    return
        else:
            for piece in pieces:
                if not await _write(writer, piece):
                    return
                await asyncio.sleep(0)
        writer.close()
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        _routes.CallContext.on_error(error, f"{name} has failed within its stream")
        if not isinstance(error, Exception):
            raise
    finally:
        # At once: readers of the rest would otherwise wait until this task is collected.
        writer.abort()
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def _write(writer: Writer, piece: _Piece) -> bool:
    """Writes a piece and waits for room. Returns whether the client is still connected: an
    exception of the pieces' own source must not pass for its end."""
    import asyncio

    try:
        has_room = writer.write(piece.encode() if isinstance(piece, str) else piece)
    except ClientDisconnected:
        return False
    if not has_room:
        room = asyncio.get_running_loop().create_future()
        writer.when_room(functools.partial(_routes.set_done, room))
        await room
    return True
