"""Gustnado: a very small, very fast, highly tunable HTTP server.

    import gustnado

    app = gustnado.App()

    @app.get("/hello/{name}")
    def hello(name):
        return f"Hello, {name}!"

    app.run(port=8000)
"""

from __future__ import annotations

from ._app import App, stream
from ._errors import ClientDisconnected
from ._events import events
from ._gustnado import Request, Response, WebSocket, Writer
from ._gustnado import __version__ as __version__

# Type checkers take it for true. At run time nothing is imported for types.
TYPE_CHECKING = False

__all__ = ["App", "ClientDisconnected", "Request", "Response", "Server", "WebSocket", "Writer",
           "events", "run", "stream"]

if TYPE_CHECKING:
    from ._server import Server, run
else:

    def __getattr__(name):
        # Only a program that serves needs what they take.
        if name in ("Server", "run"):
            from . import _server

            return getattr(_server, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
