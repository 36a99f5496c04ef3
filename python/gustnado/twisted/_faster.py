"""Functions of twisted.web that are called for each request, in forms that say the same sooner."""

import time

from twisted.internet import error
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
    """Puts them in place of Twisted's, where nobody else has put anything there."""
    for module in (http, server):
        if module.datetimeToString is _slow_date:
            module.datetimeToString = date
    if http._escape.__module__ == http.__name__:
        http._escape = escape_for_log


class Timeout:
    """The idle time-out of a connection, which is set and cancelled with each request.

    It stands for `callLater` and for the call that this returns. Behind it is one call of the
    reactor's, which looks at the time when it is due and then goes on waiting, if need be.
    """

    __slots__ = ("_reactor", "_call", "_due", "_then")

    def __init__(self, reactor):
        self._reactor, self._call, self._due, self._then = reactor, None, 0.0, None

    def __call__(self, delay, then):
        self._then = then
        self.reset(delay)
        return self

    def active(self):
        return self._then is not None

    def reset(self, delay):
        self._due = self._reactor.seconds() + delay
        if self._call is None:
            self._call = self._reactor.callLater(delay, self._look)
        elif self._call.getTime() > self._due:
            self._call.reset(delay)

    def cancel(self):
        if self._then is None:
            raise error.AlreadyCancelled
        self._then = None

    def end(self):
        """There will be no more time-outs."""
        self._then = None
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _look(self):
        self._call = None
        if self._then is None:
            return
        left = self._due - self._reactor.seconds()
        if left > 0:
            self._call = self._reactor.callLater(left, self._look)
        else:
            then, self._then = self._then, None
            then()
