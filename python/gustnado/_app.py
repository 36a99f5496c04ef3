"""An application: functions and folders by path."""

from . import _routes
from ._chain import Chain
from ._gustnado import Response, canonical_route


class App:
    """Handlers by path, and the server that runs them.

    A handler takes the request, named parts of its path, both or nothing, and returns text, bytes,
    a dictionary or list (JSON), None (204), a pair of a status and one of these, or a `Response`.
    """

    def __init__(self):
        self._places = []
        self._folders = []
        self._chain = Chain()
        # Servers that `run` has started.
        self._servers = []

    def route(self, path, method=None, *, merge_slashes=True, exempt=False,
              limit_concurrency=None, body=None):
        """Adds a handler for a method, or for all that have none of their own.

        - `merge_slashes`: whether the rest that `{*rest}` matches loses its empty segments.
        - `exempt`: whether the handler runs at once, however many the setting `limit_concurrency`
          allows.
        - `limit_concurrency`: how many handlers of the path run at a time, whatever the setting
          allows; others wait, or get 503. None: no limit of its own.
        - `body`: where whole bodies are kept, in place of `body_policy`: `"memory"`, `"spool"` (in
          memory up to 1 MiB, else on the disk), or `"stream"`: nowhere.
        """
        _routes.check(path)
        options = merge_slashes, exempt, _routes.limit(limit_concurrency), body

        def add(function):
            _routes.handler(method, path, function, *options)
            self._places.append((method, path, function, *options))
            return function

        return add

    def get(self, path, **options):
        return self.route(path, "GET", **options)

    def post(self, path, **options):
        return self.route(path, "POST", **options)

    def put(self, path, **options):
        return self.route(path, "PUT", **options)

    def patch(self, path, **options):
        return self.route(path, "PATCH", **options)

    def delete(self, path, **options):
        return self.route(path, "DELETE", **options)

    def files(self, path, folder):
        """Serves a folder below a path. The engine does, without Python."""
        canonical_route(path or "/")
        self._folders.append((path, str(folder)))
        return self

    def before(self, function=None, *, under="/"):
        """Adds a function that is called with each request to a handler below a path, before it.

        What it returns is the response, unless it is None. For decorating, too. Files that the
        engine serves never enter Python.
        """
        return self._add_link(self._chain.before, function, under)

    def after(self, function=None, *, under="/"):
        """Adds a function that is called with each such request and its `Response`.

        It may change the response. What it returns replaces it, unless it is None.
        """
        return self._add_link(self._chain.after, function, under)

    def _add_link(self, add, function, under):
        if function is None:
            return lambda decorated: self._add_link(add, decorated, under)
        canonical_route(under)
        add(function, under)
        return function

    def handlers(self):
        """Returns all handlers with their middleware, as the engine takes them."""
        return [_routes.handler(method, path, self._chain.around(path, function), *options)
                for method, path, function, *options in self._places]

    def run(self, **settings):
        """Serves until Ctrl-C or TERM, or `stop`, then lets responses finish.

        With several `workers`, each is a process that begins as a copy of this one. Where it cannot
        start, the program exits with 1 or 2.

        `settings` are the flags of `gustnado run`: `port=8000, timeout_keep_alive="30s"`.
        """
        from . import _server

        server = _server.made(self, settings)
        self._servers.append(server)
        try:
            server.run()
        finally:
            self._servers.remove(server)

    def stop(self):
        """Ends in order what `run` serves, from any thread. Returns at once."""
        for server in list(self._servers):
            server.stop()


def stream(pieces, **options):
    """Returns a response with an iterable, plain or asynchronous, of bytes or text.

    For coroutine functions."""
    import asyncio

    response, writer = Response.open(**options)
    task = asyncio.get_running_loop().create_task(_pump(pieces, writer, _handler_name()))
    _pumping.add(task)
    task.add_done_callback(_pumping.discard)
    # A task that waits for its next piece would otherwise wait for ever.
    writer.when_lost(task.cancel)
    return response


# The loop holds its tasks weakly.
_pumping = set()


def _handler_name():
    """The name of a task or function in the log: a task of a handler has its coroutine's."""
    import asyncio

    task = asyncio.current_task()
    return "a stream" if task is None else task.get_coro().__qualname__


async def _pump(pieces, writer, name):
    import asyncio

    try:
        if hasattr(pieces, "__aiter__"):
            async for piece in pieces:
                await _write(writer, piece)
        else:
            for piece in pieces:
                await _write(writer, piece)
                await asyncio.sleep(0)
        writer.close()
    except _ClientGone:
        pass
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


class _ClientGone(Exception):
    """The client has disconnected. (A `ConnectionError` may be the source's own.)"""


async def _write(writer, piece):
    try:
        if writer.write(piece.encode() if isinstance(piece, str) else piece):
            return
    except ConnectionError:
        raise _ClientGone from None
    import asyncio

    room = asyncio.get_running_loop().create_future()
    writer.when_room(lambda: room.done() or room.set_result(None))
    await room
