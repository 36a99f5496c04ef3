"""Faster equivalents of functions of twisted.web that are called for each request."""

from __future__ import annotations

import time

from twisted.web import http, server

from .._gustnado import escape_for_log

_original_date = http.datetimeToString
_date, _date_second = b"", -1


def date(msSinceEpoch: float | None = None) -> bytes:
    """Returns what `datetimeToString` does, and makes the text of a second once."""
    global _date, _date_second
    if msSinceEpoch is not None:
        text: bytes = _original_date(msSinceEpoch)
        return text
    now = int(time.time())
    if now != _date_second:
        _date, _date_second = _original_date(now), now
    return _date


def install(replaces_escape: bool) -> None:
    """Replaces Twisted's functions, unless they were replaced already.

    - `replaces_escape`: whether `_escape` is one that `escape_for_log` equals.
    """
    for module in (http, server):
        names = vars(module)
        if names["datetimeToString"] is _original_date:
            names["datetimeToString"] = date
    if replaces_escape and http._escape.__module__ == http.__name__:
        http._escape = escape_for_log
