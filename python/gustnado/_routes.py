"""Converts an application's functions for the engine."""

from __future__ import annotations

import re

from ._errors import ClientDisconnected
from ._gustnado import canonical_route

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import inspect
    from collections.abc import Callable, Sequence

    from ._gustnado import Request, _HandlerSpec, _SocketSpec

# `{name}` and `{*rest}` in a path.
_PART = re.compile(r"\{\*?([^}]*)\}")
# A token (RFC 9110, 5.6.2).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class CallContext:
    """Shared context of all handlers: see `python/src/call.rs`."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.to_json = to_json

    @staticmethod
    def on_error(
        error: BaseException | None, what: str, is_peers_fault: bool = False
    ) -> None:
        """Logs the exception of a handler or application."""
        import asyncio
        import logging

        log = logging.getLogger("gustnado.error")
        if is_peers_fault:
            # The exception follows from a disconnect or a broken body.
            log.debug("%s: it is the client's fault", what, exc_info=error)
        elif isinstance(error, asyncio.CancelledError):
            # Its canceller knows why; at the server's end, that is the server.
            log.debug("%s: it was cancelled", what)
        elif isinstance(error, ClientDisconnected):
            # An application need not catch this: there is no client to respond to.
            log.debug("%s: %s", what, error)
        else:
            log.error("%s", what, exc_info=error)


def warn(what: str) -> None:
    """Logs a warning for the operator."""
    import logging

    logging.getLogger("gustnado.error").warning("%s", what)


def set_done(future: asyncio.Future[None]) -> None:
    """Wakes what waits for a future. It may have been cancelled meanwhile."""
    if not future.done():
        future.set_result(None)


def to_json(value: object) -> str:
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def is_coroutine_function(function: object) -> bool:
    """Whether it is one, or an object or functools.partial that calls one."""
    import inspect

    if inspect.iscoroutinefunction(function):
        return True
    called = getattr(function, "func", None) or type(function).__call__
    return inspect.iscoroutinefunction(called)


def check(path: str) -> None:
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


def taken(path: str, function: Callable[..., object]) -> tuple[list[str], bool]:
    """The named parts of a path that a function takes, and whether it takes the request.

    It takes parts by their names, and the request as the parameter that is none of them.
    """
    import inspect

    parts = _PART.findall(path)
    takes_request = False
    named: list[str] = []
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


def signature(parts: list[str]) -> inspect.Signature:
    """Returns that of a function of the request and these parts of the path."""
    import inspect

    kind = inspect.Parameter
    named = [kind(part, kind.KEYWORD_ONLY) for part in parts]
    return inspect.Signature([kind("request", kind.POSITIONAL_ONLY), *named])


def limit(handlers_max: int | None) -> int:
    """Returns how many handlers of a path run at a time, for the engine: 0 is no limit."""
    if handlers_max is None:
        return 0
    if isinstance(handlers_max, bool) or not isinstance(handlers_max, int) or handlers_max < 1:
        raise ValueError(
            f"limit_concurrency: expected a whole number from 1, or None, found {handlers_max!r}")
    return handlers_max


def links(preload: Sequence[str]) -> list[str]:
    """Returns what a page needs, for the engine, which checks each link."""
    if isinstance(preload, str):
        raise TypeError(f"preload: expected a list of links, found the text {preload!r}")
    return list(preload)


def handler(
    method: str | None, path: str, function: Callable[..., object], merge_slashes: bool = True,
    exempt: bool = False, handlers_max: int = 0, body: str | None = None,
    preload: list[str] | None = None,
) -> _HandlerSpec:
    """Returns a handler in the engine's form."""
    if body not in (None, "stream", "memory", "spool"):
        raise ValueError(f'body={body!r}: expected "stream", "memory" or "spool"')
    named, takes_request = taken(path, function)
    waits = is_coroutine_function(function)
    return (method, path, function, takes_request, named, merge_slashes, exempt, handlers_max,
            body, waits, preload or [])


class SocketOptions:
    """The keyword arguments of `App.websocket`. (A named tuple would import `typing`.)"""

    def __init__(
        self, subprotocols: Sequence[str], origins: Sequence[str],
        message_bytes_max: int | None, merge_slashes: bool,
    ) -> None:
        self.subprotocols, self.origins = subprotocols, origins
        self.message_bytes_max, self.merge_slashes = message_bytes_max, merge_slashes


def socket(
    path: str, function: Callable[..., object], options: SocketOptions,
    guard: Callable[[Request], object] | None = None,
) -> _SocketSpec:
    """Returns a handler of WebSockets in the engine's form.

    - `guard`: what runs before a WebSocket is opened."""
    for name in ("subprotocols", "origins"):
        given = getattr(options, name)
        if isinstance(given, str):
            raise TypeError(f"{name}: expected a list, found the text {given!r}")
    for subprotocol in options.subprotocols:
        if not _TOKEN.fullmatch(subprotocol):
            raise ValueError(f"subprotocols: expected a token such as v1.chat, found "
                             f"{subprotocol!r}")
    most = options.message_bytes_max
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ValueError(f"message_bytes_max: expected a number of bytes, or None, found {most!r}")
    if not is_coroutine_function(function):
        raise TypeError(f"{_name(function)}: expected a coroutine function (async def) for a "
                        "WebSocket")
    named, takes_socket = taken(path, function)
    if not takes_socket:
        raise TypeError(f"{_name(function)}: expected the WebSocket as the first parameter")
    guarded = None if guard is None else (guard, is_coroutine_function(guard))
    return (path, function, named, options.merge_slashes, guarded, list(options.subprotocols),
            list(options.origins), most)


def _name(function: Callable[..., object]) -> str:
    name: str = getattr(function, "__qualname__", repr(function))
    return name
