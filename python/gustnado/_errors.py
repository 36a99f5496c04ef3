"""Exceptions of the public API."""


class ClientDisconnected(ConnectionError):
    """The client has disconnected, or its response is complete: nothing more comes from it, and
    nothing more reaches it.

    `Writer.write`, reading a body, and `send` of an ASGI application raise it. An application need
    not catch it: it is logged at the level `debug` only. It is a `ConnectionError`, and so an
    `OSError`, as ASGI demands of `send`.
    """
