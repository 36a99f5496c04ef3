"""Gustnado: a very small, very fast, highly tunable HTTP server.

    import gustnado

    app = gustnado.App()

    @app.get("/hello/{name}")
    def hello(name):
        return f"Hello, {name}!"

    app.run(port=8000)
"""

from ._app import App, stream
from ._events import events
from ._gustnado import Request, Response, Writer, __version__

__all__ = ["App", "Request", "Response", "Server", "Writer", "events", "run", "stream"]


def __getattr__(name):
    # Only a program that serves needs what they take.
    if name in ("Server", "run"):
        from . import _server

        return getattr(_server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
