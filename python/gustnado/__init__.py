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
from ._gustnado import Request, Response, Writer

__all__ = ["App", "Request", "Response", "Writer", "events", "stream"]
