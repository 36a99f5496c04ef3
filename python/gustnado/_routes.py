"""What an application's functions look like to the engine."""

import re

from ._gustnado import canonical_route

# `{name}` and `{*rest}` in a path.
_PART = re.compile(r"\{\*?([^}]*)\}")

# What `send` says to an application whose client has gone: see `python/src/asgi/exchange.rs`.
CLIENT_GONE = "the client has gone"


class CallContext:
    """What all handlers stand on: see `python/src/call.rs`."""

    def __init__(self, loop=None):
        self.loop = loop
        self.to_json = to_json

    @staticmethod
    def on_error(error, what, is_peers_fault=False):
        import asyncio
        import logging

        log = logging.getLogger("gustnado.error")
        if is_peers_fault:
            # The client has gone, or sent a broken body, and that is how it was taken.
            log.debug("%s: it is the client's fault", what, exc_info=error)
        elif isinstance(error, asyncio.CancelledError):
            # Whoever has cancelled it knows why: at the server's end, the server has.
            log.debug("%s: it was cancelled", what)
        elif type(error) is OSError and error.args == (CLIENT_GONE,):
            # What a send raises then, and an application need not catch: there is nobody to answer.
            log.debug("%s: %s", what, CLIENT_GONE)
        else:
            log.error("%s", what, exc_info=error)


def warn(what):
    """What an operator should know of, though nothing has failed here."""
    import logging

    logging.getLogger("gustnado.error").warning("%s", what)


def to_json(value):
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def is_coroutine_function(function):
    """Also of objects that are called, and of what functools.partial makes."""
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
    """Of a function that takes the request and these parts of the path."""
    import inspect

    kind = inspect.Parameter
    named = [kind(part, kind.KEYWORD_ONLY) for part in parts]
    return inspect.Signature([kind("request", kind.POSITIONAL_ONLY), *named])


def handler(method, path, function, merge_slashes=True):
    """A function with its place, as the engine takes it."""
    named, takes_request = taken(path, function)
    waits = is_coroutine_function(function)
    return method, path, function, takes_request, named, merge_slashes, waits


def _name(function):
    return getattr(function, "__qualname__", repr(function))
