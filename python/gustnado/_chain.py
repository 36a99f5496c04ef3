"""Functions that run before and after handlers."""

import functools

from . import _routes
from ._gustnado import Response


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
        before = [link for under, link in self._before if _is_under(path, under)]
        after = [link for under, link in self._after if _is_under(path, under)]
        if not before and not after:
            return function
        parts, takes_request = _routes.taken(path, function)
        call = function if takes_request else lambda _request, **named: function(**named)
        waits = map(_routes.is_coroutine_function, (function, *before, *after))
        chained = _waiting(before, call, after) if any(waits) else _plain(before, call, after)
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


def _is_under(path, under):
    return path == under or path.startswith(under.rstrip("/") + "/")
