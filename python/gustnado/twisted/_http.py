"""Connections of sites: the engine reads their plain requests and responds to them.

Protocol and transport are Twisted's own all the while. The engine does what they would do with a
request that arrives whole and is plain; they handle everything else.
"""

import functools
import os
import sys

from twisted.internet import error, tcp
from twisted.python import context, log
from twisted.web import http, http_headers, iweb

from .._gustnado import TwistedLink, TwistedTimeout
from . import _faster
from ._known import Known

encode_name = http_headers._nameEncoder.encode
_faster.install()
_known = Known(_faster.date)

# Methods that the engine replaces. A class that overrides one of them keeps its own.
_REPLACED = (
    "dataReceived", "lineReceived", "rawDataReceived", "headerReceived", "allHeadersReceived",
    "allContentReceived", "lineLengthExceeded", "setLineMode", "setRawMode",
    "_maybeChooseTransferDecoder",
)


# The same for Cyclone, whose heads come whole to `_on_headers`.
_REPLACED_IN_CYCLONE = (
    "dataReceived", "lineReceived", "setLineMode", "setRawMode", "lineLengthExceeded",
)


def is_site(factory):
    """Whether the engine may serve its connections: each one is checked again."""
    if isinstance(factory, http.HTTPFactory):
        return True
    cyclone = sys.modules.get("cyclone.web")
    if cyclone is None or not isinstance(factory, cyclone.Application):
        return False
    from . import _cyclone

    _cyclone.install()
    return True


def make_transport(skt, protocol, client, server, session, reactor):
    """The transport of a new connection: called as `tcp.Server` is."""
    channel, is_simple = _channel_of(protocol)
    if channel is None:
        return tcp.Server(skt, protocol, client, server, session, reactor)
    return Server(skt, protocol, channel, is_simple, client, server, session, reactor)


def _channel_of(protocol):
    """The HTTP channel of a protocol, if it is as its framework makes it; and whether its factory
    of requests takes nothing else, if it has one."""
    if type(protocol) is http._GenericHTTPChannelProtocol:
        channel = protocol._channel
        if isinstance(channel, http.HTTPChannel) and _has_own(channel, _originals_of_web()):
            return channel, iweb.INonQueuedRequestFactory.providedBy(channel.requestFactory)
    cyclone = sys.modules.get("cyclone.httpserver")
    if cyclone is not None and isinstance(protocol, cyclone.HTTPConnection):
        if _has_own(protocol, _originals_of_cyclone(cyclone.HTTPConnection)):
            return protocol, None
    return None, None


def _has_own(channel, originals):
    """Whether all of these are its framework's originals."""
    actual = type(channel)
    return originals is not None and channel.__dict__.keys().isdisjoint(originals) and all(
        getattr(actual, name, None) is own for name, own in originals.items()
    )


def _originals(kind, names, **limits):
    """What its framework has by these names, and these values. Nothing, if something else is there
    by now: then no connection has it."""
    found = {name: getattr(kind, name) for name in names}
    roots = ("twisted", _root(kind))
    folders = tuple(os.path.dirname(sys.modules[root].__file__) for root in roots)
    is_own = all(own.__code__.co_filename.startswith(folders) for own in found.values())
    if not is_own or any(getattr(kind, name) != value for name, value in limits.items()):
        return None
    return {**found, **{name: getattr(kind, name) for name in limits}}


def _root(kind):
    return kind.__module__.partition(".")[0]


@functools.cache
def _originals_of_web():
    limits = {"MAX_LENGTH": 16384, "delimiter": b"\r\n", "maxHeaders": 500,
              "totalHeadersSize": 16384}
    return _originals(http.HTTPChannel, _REPLACED, **limits)


@functools.cache
def _originals_of_cyclone(kind):
    return _originals(kind, _REPLACED_IN_CYCLONE, MAX_LENGTH=16384, delimiter=b"\r\n")


class Server(tcp.Server):
    """A transport through which the engine sends short output."""

    _link = None

    def __init__(self, skt, protocol, channel, is_simple, client, server, session, reactor):
        tcp.Server.__init__(self, skt, protocol, client, server, session, reactor)
        contexts = context.theContextTracker.currentContext().contexts
        words = {**context.get(log.ILogContext), "system": self.logPrefix()}
        own = {log.ILogContext: words}
        self._peer = tcp.Server.getPeer(self)
        self._host = tcp.Server.getHost(self)
        self._link = TwistedLink(
            skt.fileno(), self, super().write, protocol, channel, contexts, own, is_simple,
            None if is_simple is not None else self._cyclone_of(channel),
        )
        self._fd = skt.fileno()
        self._timeout = None
        if getattr(channel, "callLater", None) == reactor.callLater:
            self._timeout = TwistedTimeout(reactor, error.AlreadyCancelled)
            channel.callLater = self._timeout
        if is_simple is not None and (words := _known.words_for(channel)) is not None:
            reads = reactor._reads
            self._link.take_ordinary(words, self._peer, self._host, reads, self._timeout)
        reactor._poller.serve(self._fd, self._link)

    def _cyclone_of(self, connection):
        words = sys.modules[f"{__package__}._cyclone"].words_for(connection)
        host = getattr(self._peer, "host", None)
        return None if words is None or host is None else (words, host)

    def getPeer(self):
        return self._peer

    def getHost(self):
        return self._host

    def write(self, data):
        if self._link is None:
            super().write(data)
        elif self._link.put(data):
            self.reactor._poller.flush_later(self._link)

    def writeSequence(self, iovec):
        if self._link is None:
            super().writeSequence(iovec)
        else:
            self.write(b"".join(iovec))

    def loseConnection(self, *args, **kwargs):
        self._hand_over()
        super().loseConnection(*args, **kwargs)

    def loseWriteConnection(self):
        self._hand_over()
        super().loseWriteConnection()

    def abortConnection(self):
        if self._link is not None:
            self._link.forget()
        super().abortConnection()

    def startTLS(self, *args, **kwargs):
        # From now on, bytes on the wire differ from those read and written.
        self._part()
        return super().startTLS(*args, **kwargs)

    def connectionLost(self, reason):
        timeout, self._timeout = self._timeout, None
        try:
            self._part()
        finally:
            try:
                super().connectionLost(reason)
            finally:
                if timeout is not None:
                    timeout.end()

    def _hand_over(self):
        if self._link is not None:
            self._link.hand_over()

    def _part(self):
        if self._link is not None:
            link, self._link = self._link, None
            self.reactor._poller.unserve(self._fd)
            self.reactor._poller.flush_now(link)
