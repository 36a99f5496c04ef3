"""Converts an application's functions for the engine."""

import re

from ._gustnado import canonical_route

# `{name}` and `{*rest}` in a path.
_PART = re.compile(r"\{\*?([^}]*)\}")

# The error of `send` after a disconnect: see `python/src/asgi/exchange.rs`.
CLIENT_GONE = "the client has gone"


class CallContext:
    """Shared context of all handlers: see `python/src/call.rs`."""

    def __init__(self, loop=None):
        self.loop = loop
        self.to_json = to_json

    @staticmethod
    def on_error(error, what, is_peers_fault=False):
        import asyncio
        import logging

        log = logging.getLogger("gustnado.error")
        if is_peers_fault:
            # The exception follows from a disconnect or a broken body.
            log.debug("%s: it is the client's fault", what, exc_info=error)
        elif isinstance(error, asyncio.CancelledError):
            # Its canceller knows why; at the server's end, that is the server.
            log.debug("%s: it was cancelled", what)
        elif type(error) is OSError and error.args == (CLIENT_GONE,):
            # An application need not catch this: there is no client to respond to.
            log.debug("%s: %s", what, CLIENT_GONE)
        else:
            log.error("%s", what, exc_info=error)


def warn(what):
    """Logs a warning for the operator."""
    import logging

    logging.getLogger("gustnado.error").warning("%s", what)


def to_json(value):
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def is_coroutine_function(function):
    """Whether it is one, or an object or functools.partial that calls one."""
    import inspect

    if inspect.iscoroutinefunction(function):
        return True
    called = getattr(function, "func", None) or getattr(type(function), "__call__", None)
    return inspect.iscoroutinefunction(called)


def check(path):
    """Raises ValueError for a path that no request could come to, or whose parts have one name."""
    canonical_route(path)
    if not path.startswith("/"):
        raise ValueError(
            f"expected a path such as /hello/{{name}}, found {path!r}; begin it with /")
    parts = _PART.findall(path)
    twice = [part for part in parts if parts.count(part) > 1]
    if twice:
        raise ValueError(
            f"{path!r}: two parts are called {twice[0]!r}, and a handler could have one of them "
            "only; give each a name of its own"
        )


def taken(path, function):
    """The named parts of a path that a function takes, and whether it takes the request.

    It takes parts by their names, and the request as the parameter that is none of them.
    """
    import inspect

    parts = _PART.findall(path)
    takes_request, named = False, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            named += [part for part in parts if part not in named]
        elif parameter.name in parts and parameter.kind is not parameter.POSITIONAL_ONLY:
            named.append(parameter.name)
        elif not takes_request and parameter.kind is not parameter.KEYWORD_ONLY and not named:
            takes_request = True
        elif parameter.default is parameter.empty:
            where = f" ({', '.join(parts)})" if parts else ""
            raise TypeError(
                f"{_name(function)}: expected the request first, and then parts of the path {path}"
                f"{where}; found the parameter {parameter.name!r}"
            )
    return named, takes_request


def signature(parts):
    """Returns that of a function of the request and these parts of the path."""
    import inspect

    kind = inspect.Parameter
    named = [kind(part, kind.KEYWORD_ONLY) for part in parts]
    return inspect.Signature([kind("request", kind.POSITIONAL_ONLY), *named])


def limit(handlers_max):
    """Returns how many handlers of a path run at a time, for the engine: 0 is no limit."""
    if handlers_max is None:
        return 0
    if isinstance(handlers_max, bool) or not isinstance(handlers_max, int) or handlers_max < 1:
        raise ValueError(
            f"limit_concurrency: expected a whole number from 1, or None, found {handlers_max!r}")
    return handlers_max


def handler(method, path, function, merge_slashes=True, exempt=False, handlers_max=0, body=None):
    """Returns a handler in the engine's form."""
    if body not in (None, "stream", "memory", "spool"):
        raise ValueError(f'body={body!r}: expected "stream", "memory" or "spool"')
    named, takes_request = taken(path, function)
    waits = is_coroutine_function(function)
    return (method, path, function, takes_request, named, merge_slashes, exempt, handlers_max,
            body, waits)


def _name(function):
    return getattr(function, "__qualname__", repr(function))
