"""Functions that run before and after handlers."""

import functools

from . import _routes
from ._gustnado import Response, canonical_route


class Chain:
    """What runs before and after an application's handlers, in the order in which it was added.

    Each link has a path below which it is meant.
    """

    def __init__(self):
        self._before, self._after = [], []

    def before(self, function, under="/"):
        self._before.append((under, function))

    def after(self, function, under="/"):
        self._after.append((under, function))

    def around(self, path, function):
        """A handler with all that runs before and after it, as a handler."""
        before, after = _meant(path, self._before), _meant(path, self._after)
        if not before and not after:
            return function
        parts, takes_request = _routes.taken(path, function)
        call = function if takes_request else lambda _request, **named: function(**named)
        waits = map(_routes.is_coroutine_function, (function, *before, *after))
        chained = (_waiting if any(waits) else _plain)(before, call, after)
        functools.update_wrapper(chained, function)
        del chained.__wrapped__
        chained.__signature__ = _routes.signature(parts)
        return chained


def _plain(before, handler, after):
    def chained(request, **named):
        answer = None
        for link in before:
            answer = link(request)
            if answer is not None:
                break
        else:
            answer = handler(request, **named)
        for link in after:
            answer = Response.of(answer)
            changed = link(request, answer)
            answer = answer if changed is None else changed
        return answer

    return chained


def _waiting(before, handler, after):
    async def chained(request, **named):
        answer = None
        for link in before:
            answer = await _come(link(request))
            if answer is not None:
                break
        else:
            answer = await _come(handler(request, **named))
        for link in after:
            answer = Response.of(answer)
            changed = await _come(link(request, answer))
            answer = answer if changed is None else changed
        return answer

    return chained


async def _come(value):
    return await value if hasattr(value, "__await__") else value


def _meant(path, links):
    """Returns the links that apply to a route's path, or to some that it serves."""
    asked = [(_is_under(path, under), under, link) for under, link in links]
    return [link if is_meant else _where(under, link)
            for is_meant, under, link in asked if is_meant is not False]


def _where(under, link):
    """Returns the link for requests below a path, where the route serves others as well."""

    def asked(request, *more):
        return link(request, *more) if request.is_under(under) else None

    async def asked_later(request, *more):
        return await link(request, *more) if request.is_under(under) else None

    return asked_later if _routes.is_coroutine_function(link) else asked


def _is_under(path, under):
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
