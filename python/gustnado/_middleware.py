"""Functions that run before and after handlers."""

from __future__ import annotations

import functools

from . import _routes
from ._gustnado import Response, canonical_route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._gustnado import Request

    _Function = Callable[..., Any]


class Middleware:
    """What runs before and after an application's handlers, in the order in which it was added.

    Each function has a path below which it runs.
    """

    def __init__(self) -> None:
        self._before: list[tuple[str, _Function]] = []
        self._after: list[tuple[str, _Function]] = []

    def before(self, function: _Function, under: str = "/") -> None:
        self._before.append((under, function))

    def after(self, function: _Function, under: str = "/") -> None:
        self._after.append((under, function))

    def around(self, path: str, function: _Function) -> _Function:
        """Returns a handler with all that runs before and after it, as a handler."""
        before, after = _that_run(path, self._before), _that_run(path, self._after)
        if not before and not after:
            return function
        parts, takes_request = _routes.taken(path, function)
        call = function if takes_request else lambda _request, **named: function(**named)
        waits = map(_routes.is_coroutine_function, (function, *before, *after))
        chained = (_waiting if any(waits) else _plain)(before, call, after)
        wrapper: Any = functools.update_wrapper(chained, function)
        del wrapper.__wrapped__
        wrapper.__signature__ = _routes.signature(parts)
        return chained

    def guard(self, path: str) -> _Function | None:
        """Returns what runs before a WebSocket of a path is opened; None: nothing."""
        before = _that_run(path, self._before)
        if not before:
            return None

        def guard(request: Request) -> object:
            for function in before:
                response = function(request)
                if response is not None:
                    return response
            return None

        async def guard_later(request: Request) -> object:
            for function in before:
                response = await _awaited(function(request))
                if response is not None:
                    return response
            return None

        return guard_later if any(map(_routes.is_coroutine_function, before)) else guard


def _plain(before: list[_Function], handler: _Function, after: list[_Function]) -> _Function:
    def chained(request: Request, **named: str | None) -> object:
        response: Any = None
        for function in before:
            response = function(request)
            if response is not None:
                break
        else:
            response = handler(request, **named)
        for function in after:
            response = Response.of(response)
            changed = function(request, response)
            response = response if changed is None else changed
        return response

    return chained


def _waiting(before: list[_Function], handler: _Function, after: list[_Function]) -> _Function:
    async def chained(request: Request, **named: str | None) -> object:
        response: Any = None
        for function in before:
            response = await _awaited(function(request))
            if response is not None:
                break
        else:
            response = await _awaited(handler(request, **named))
        for function in after:
            response = Response.of(response)
            changed = await _awaited(function(request, response))
            response = response if changed is None else changed
        return response

    return chained


async def _awaited(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


def _that_run(path: str, functions: list[tuple[str, _Function]]) -> list[_Function]:
    """Returns the functions that run for a route's path, or for some paths that it serves."""
    asked = [(_is_under(path, under), under, function) for under, function in functions]
    return [function if is_certain else _only_under(under, function)
            for is_certain, under, function in asked if is_certain is not False]


def _only_under(under: str, function: _Function) -> _Function:
    """Returns the function for requests below a path, where the route serves others as well."""

    def checked(request: Request, *more: Response) -> object:
        return function(request, *more) if request.is_under(under) else None

    async def checked_later(request: Request, *more: Response) -> object:
        return await function(request, *more) if request.is_under(under) else None

    return checked_later if _routes.is_coroutine_function(function) else checked


def _is_under(path: str, under: str) -> bool | None:
    """Returns whether a route serves only what is below a path; None if the request decides."""
    parts = canonical_route(path).split("/")
    base = canonical_route(under).rstrip("/").split("/")
    is_certain = True
    for at, wanted in enumerate(base):
        found = parts[at] if at < len(parts) else ""
        if found == wanted and at < len(parts):
            continue
        if "{" not in found or "{" in wanted:
            return False
        is_certain = False
        if found.startswith("{*"):
            break
    return True if is_certain else None
