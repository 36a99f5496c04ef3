"""Connections of sites: the engine reads their plain requests and responds to them.

Protocol and transport are Twisted's own all the while. The engine does what they would do with a
request that arrives whole and is plain; they handle everything else.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from twisted.internet import error, tcp
from twisted.internet.interfaces import IAddress
from twisted.python import context, failure, log
from twisted.web import http, http_headers, iweb

from .._gustnado import CycloneApi, TlsLink, TwistedConnection, TwistedTimeout
from . import _faster
from ._known import Known

if TYPE_CHECKING:
    from ._reactor import GustnadoReactor

_names: Any = http_headers
# Twisted 24.7 has no `_nameEncoder`.
encode_name: Callable[[bytes], bytes] = (
    _names._nameEncoder.encode if hasattr(_names, "_nameEncoder") else _names.Headers()._encodeName
)

_known = Known(_faster.date)
_faster.install(_known.has_known_escape)

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


def is_site(factory: object, patches_cyclone: bool) -> bool:
    """Whether the engine may serve its connections: each one is checked again.

    - `patches_cyclone`: whether methods of Cyclone's classes may be replaced.
    """
    if isinstance(factory, http.HTTPFactory):
        return True
    cyclone = sys.modules.get("cyclone.web")
    if cyclone is None or not isinstance(factory, cyclone.Application):
        return False
    from . import _cyclone

    if patches_cyclone:
        _cyclone.patch()
    return True


def make_transport(
    skt: socket.socket,
    protocol: Any,
    client: Any,
    server: tcp.Port,
    session: int,
    reactor: GustnadoReactor,
) -> tcp.Server:
    """The transport of a new connection: called as `tcp.Server` is."""
    channel, is_simple = channel_of(protocol)
    if channel is None:
        # It provides `IReactorFDSet`, which mypy cannot see.
        return tcp.Server(skt, protocol, client, server, session, reactor)  # type: ignore[arg-type]
    return Server(skt, protocol, channel, is_simple, client, server, session, reactor)


def channel_of(protocol: Any) -> tuple[Any, bool | None]:
    """The HTTP channel of a protocol, if it is as its framework makes it; and whether its factory
    of requests takes nothing else, if it has one."""
    if type(protocol) is http._GenericHTTPChannelProtocol:
        channel = protocol._channel
        if isinstance(channel, http.HTTPChannel) and _has_own(channel, _originals_of_web()):
            is_simple: bool = iweb.INonQueuedRequestFactory.providedBy(channel.requestFactory)
            return channel, is_simple
    cyclone = sys.modules.get("cyclone.httpserver")
    if cyclone is not None and isinstance(protocol, cyclone.HTTPConnection):
        if _has_own(protocol, _originals_of_cyclone(cyclone.HTTPConnection)):
            return protocol, None
    return None, None


def _has_own(channel: object, originals: Mapping[str, object] | None) -> bool:
    """Whether all of these are its framework's originals."""
    actual = type(channel)
    return originals is not None and vars(channel).keys().isdisjoint(originals) and all(
        getattr(actual, name, None) is own for name, own in originals.items()
    )


def _originals(kind: type, names: Iterable[str], **limits: object) -> Mapping[str, object] | None:
    """What its framework has by these names, and these values. Nothing, if something else is there
    by now: then no connection has it."""
    found = {name: getattr(kind, name) for name in names}
    roots = [sys.modules[name] for name in ("twisted", kind.__module__.partition(".")[0])]
    folders = tuple(map(_folder, roots))
    is_own = all(own.__code__.co_filename.startswith(folders) for own in found.values())
    if not is_own or any(getattr(kind, name) != value for name, value in limits.items()):
        return None
    return {**found, **{name: getattr(kind, name) for name in limits}}


def _folder(package: ModuleType) -> str:
    return os.path.dirname(package.__file__ or "")


@functools.cache
def _originals_of_web() -> Mapping[str, object] | None:
    limits = {"MAX_LENGTH": 16384, "delimiter": b"\r\n", "maxHeaders": 500,
              "totalHeadersSize": 16384}
    return _originals(http.HTTPChannel, _REPLACED, **limits)


@functools.cache
def _originals_of_cyclone(kind: type) -> Mapping[str, object] | None:
    return _originals(kind, _REPLACED_IN_CYCLONE, MAX_LENGTH=16384, delimiter=b"\r\n")


class Server(tcp.Server):
    """A transport through which the engine sends short output."""

    _native: TwistedConnection | None = None

    def __init__(
        self,
        skt: socket.socket,
        protocol: Any,
        channel: Any,
        is_simple: bool | None,
        client: Any,
        server: tcp.Port,
        session: int,
        reactor: GustnadoReactor,
    ) -> None:
        super().__init__(skt, protocol, client, server, session, reactor)  # type: ignore[arg-type]
        contexts = context.theContextTracker.currentContext().contexts
        words = {**context.get(log.ILogContext), "system": self.logPrefix()}
        own = {log.ILogContext: words}
        self._peer: IAddress = tcp.Server.getPeer(self)
        self._host: IAddress = tcp.Server.getHost(self)
        # (Before a field is added: that replaces the channel's factory of requests.)
        api = _known.api_for(channel) if is_simple is not None else None
        hsts = self._addFields(protocol)
        self._native = TwistedConnection(
            skt.fileno(), self, super().write, protocol, channel, contexts, own, is_simple,
            None if is_simple is not None else self._cyclone_of(channel), self._nativeTLS(),
        )
        self._fd = skt.fileno()
        self._timeout: TwistedTimeout | None = None
        if getattr(channel, "callLater", None) == reactor.callLater:
            self._timeout = TwistedTimeout(reactor, error.AlreadyCancelled)
            channel.callLater = self._timeout
        if api is not None:
            self._native.enable_ordinary(
                api, self._peer, self._host, reactor._reads, self._timeout, hsts
            )
        reactor._poller.serve(self._fd, self._native)

    def _cyclone_of(self, connection: object) -> tuple[CycloneApi, str] | None:
        api = sys.modules[f"{__package__}._cyclone"].api_for(connection)
        host = getattr(self._peer, "host", None)
        return None if api is None or host is None else (api, host)

    def _addFields(self, protocol: Any) -> bytes | None:
        """Adds fields of the transport's to responses. Returns the value of
        `Strict-Transport-Security`."""
        return None

    def _nativeTLS(self) -> tuple[TlsLink, Callable[[bytes], None]] | None:
        """Returns the connection's TLS, and what sends bytes as they are."""
        return None

    def getPeer(self) -> IAddress:
        return self._peer

    def getHost(self) -> IAddress:
        return self._host

    def write(self, data: bytes) -> None:
        if self._native is None:
            super().write(data)
        elif self._native.put(data):
            self.reactor._poller.flush_later(self._native)

    def writeSequence(self, iovec: Iterable[bytes]) -> None:
        if self._native is None:
            super().writeSequence(iovec)
        else:
            self.write(b"".join(iovec))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        if self._native is not None and not streaming and self.producer is None:
            # It is asked for the next piece once Twisted has sent the last one.
            self._native.set_pulled(True)
        super().registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        super().unregisterProducer()
        if self._native is not None:
            self._native.set_pulled(False)

    def loseConnection(self, *args: Any, **kwargs: Any) -> None:
        self._hand_over()
        super().loseConnection(*args, **kwargs)

    def loseWriteConnection(self) -> None:
        self._hand_over()
        super().loseWriteConnection()

    def abortConnection(self) -> None:
        if self._native is not None:
            self._native.forget()
        super().abortConnection()

    def startTLS(self, *args: Any, **kwargs: Any) -> Any:
        # From now on, bytes on the wire differ from those read and written.
        self._part()
        return super().startTLS(*args, **kwargs)

    def connectionLost(self, reason: failure.Failure) -> None:
        timeout, self._timeout = self._timeout, None
        try:
            self._part()
        finally:
            try:
                super().connectionLost(reason)
            finally:
                if timeout is not None:
                    timeout.end()

    def _hand_over(self) -> None:
        if self._native is not None:
            self._native.hand_over()

    def _part(self) -> None:
        if self._native is not None:
            native, self._native = self._native, None
            self.reactor._poller.unserve(self._fd)
            self.reactor._poller.flush_now(native)
