from ._app import App as App, stream as stream
from ._events import events as events
from ._gustnado import (
    Request as Request,
    Response as Response,
    Writer as Writer,
    __version__ as __version__,
)
from ._server import Server as Server, run as run
