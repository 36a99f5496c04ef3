"""Faster equivalents of functions of twisted.web that are called for each request."""

import time

from twisted.web import http, server

from .._gustnado import escape_for_log

_slow_date = http.datetimeToString
_date, _date_of = b"", None


def date(msSinceEpoch=None):
    """`datetimeToString`, which makes the text of a second once."""
    global _date, _date_of
    if msSinceEpoch is not None:
        return _slow_date(msSinceEpoch)
    now = int(time.time())
    if now != _date_of:
        _date, _date_of = _slow_date(now), now
    return _date


def install():
    """Replaces Twisted's functions, unless they were replaced already."""
    for module in (http, server):
        if module.datetimeToString is _slow_date:
            module.datetimeToString = date
    if http._escape.__module__ == http.__name__:
        http._escape = escape_for_log
