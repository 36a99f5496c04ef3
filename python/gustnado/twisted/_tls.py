"""TLS by the engine, in place of pyOpenSSL: `reactor.listenTCP(port, site, native_tls=True)`.

Twisted's transport receives and sends records, and the engine opens and seals them. Where the
engine reads the requests of a connection, too, it does both.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from typing import Any

from twisted.internet import main, tcp
from twisted.internet.interfaces import INegotiated
from twisted.python import log
from twisted.web import http, iweb
from zope.interface import directlyProvides, implementer  # type: ignore[import-untyped]

from .._gustnado import TlsLink, TwistedTls
from .._plan import text_of
from ._http import Server, channel_of

# Settings that count for connections of Twisted's.
SETTINGS = (
    "tls_cert", "tls_key", "tls_client_auth", "tls_client_ca", "tls_client_crl",
    "tls_handshake_timeout", "tls_records", "tls_strict_names", "tls_ticket_keys",
    "tls_version_min", "hsts",
)

# How often files are looked at, in seconds.
LOOK_EVERY = 1.0

_FOR_PLAIN = b"this port speaks https\n"
_TO_PLAIN = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_FOR_PLAIN), _FOR_PLAIN)
)


class TlsPort:
    """The TLS of a port.

    - `address`: where it listens, for messages.
    - `settings`: those of `SETTINGS`, and `tls_sites`.
    """

    def __init__(self, address: str, factory: object, settings: Mapping[str, Any]) -> None:
        given = dict(settings)
        sites = given.pop("tls_sites", None) or {}
        for name in given:
            if name not in SETTINGS:
                known = ", ".join((*SETTINGS, "tls_sites"))
                raise ValueError(f"{name}: no setting of native_tls; they are {known}")
        pairs = [
            (name.replace("_", "-"), _text(value))
            for name, value in given.items() if value is not None
        ]
        self._tls = TwistedTls(address, pairs, [_site(*one) for one in sites.items()])
        self.hsts = self._tls.hsts
        if self.hsts is not None and not isinstance(factory, http.HTTPFactory):
            raise ValueError("hsts: only a Site sends it; leave it out")
        self.handshake_timeout = self._tls.handshake_timeout
        self._looked = time.monotonic()
        for note in self._tls.notes():
            log.msg(note, system="gustnado")

    def connect(self) -> TlsLink:
        """Takes a new connection, by the files as they are by now."""
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY:
            self._looked = now
            try:
                if self._tls.refresh():
                    log.msg("certificates were read again; open connections keep theirs",
                            system="gustnado")
            except ValueError as error:
                log.msg(f"{error}; the last valid certificates stay in force", system="gustnado")
        return self._tls.connect()


def _text(value: object) -> str:
    return fspath(value) if isinstance(value, PathLike) else text_of(value)


def _site(hosts: str | Iterable[str], pair: Any) -> tuple[list[str], str, str]:
    if isinstance(pair, (str, PathLike)):
        pair = (pair, pair)
    cert, key = pair
    return [hosts] if isinstance(hosts, str) else list(hosts), fspath(cert), fspath(key)


def make_transport(
    skt: socket.socket, protocol: Any, client: Any, server: tcp.Port, session: int, reactor: Any
) -> tcp.Server:
    """The transport of a new connection: called as `tcp.Server` is."""
    channel, is_simple = channel_of(protocol)
    if channel is None:
        transport = TlsTransport(skt, protocol, client, server, session, reactor)
        transport._addHSTS(protocol)
        return transport
    return TlsServer(skt, protocol, channel, is_simple, client, server, session, reactor)


@implementer(INegotiated)
class TlsTransport(tcp.Server):
    """A transport whose bytes travel in records of TLS."""

    def __init__(
        self, skt: socket.socket, protocol: Any, client: Any, server: Any, session: int,
        reactor: Any,
    ) -> None:
        self._port: TlsPort = server.nativeTLS
        self._link: TlsLink = self._port.connect()
        super().__init__(skt, protocol, client, server, session, reactor)
        self._timer = reactor.callLater(self._port.handshake_timeout, self.abortConnection)

    # --- What is known of the peer.

    @property
    def negotiatedProtocol(self) -> bytes | None:
        # One of HTTP/1.0 is read by the same parser.
        return None if self._link.alpn is None else b"http/1.1"

    def getPeerCertificate(self) -> object:
        """Returns the client's certificate, if it has presented one: an `X509` of pyOpenSSL where
        that is installed, else its bytes in DER."""
        chain = self._link.client_chain
        if not chain:
            return None
        try:
            from OpenSSL import crypto
        except ImportError:
            return chain[0]
        return crypto.load_certificate(crypto.FILETYPE_ASN1, chain[0])

    def getPeerCertificateChain(self) -> list[bytes]:
        """Returns the client's certificates in DER, its own first."""
        return self._link.client_chain

    def getTLS(self) -> tuple[str, str, str | None] | None:
        """Returns version, cipher suite and the name that the client has asked for, once the
        handshake is over."""
        return self._link.agreed

    # --- Receiving.

    def _dataReceived(self, data: bytes | None) -> Any:
        if not data:
            return main.CONNECTION_DONE
        content = self._link.receive(data)
        self._send(self._link.seal(b""))
        result = super()._dataReceived(content) if content else None
        self._tlsChanged()
        return result

    def _tlsChanged(self) -> None:
        """Goes on where the handshake or the connection has ended."""
        failure = self._link.failure
        if self._timer is not None and (failure or self._link.is_established):
            self._stopTimer()
        if failure is not None:
            # (A peer's fault is not worth a line of the log: scanners would fill it.)
            _, is_plain = failure
            self._end(_TO_PLAIN if is_plain else b"")
        elif self._link.has_ended:
            self._end()

    def _end(self, last: bytes = b"") -> None:
        """Closes, also if a producer has more: the peer takes no more of it."""
        if self.connected and not self.disconnecting:
            self._closeTLS()
            self._send(last)
            tcp.Server.loseConnection(self)

    # --- Sending.

    def _send(self, records: bytes) -> None:
        if records:
            tcp.Server.write(self, records)

    def _closeTLS(self) -> None:
        self._send(self._link.close())

    def _maybePauseProducer(self) -> None:
        # (Records are longer than their content: where two writes of content fill the buffer once,
        # records fill it twice. A producer that is paused twice has to be resumed twice.)
        if not self.producerPaused:
            super()._maybePauseProducer()

    def write(self, data: bytes) -> None:
        if isinstance(data, str) or not self.connected:
            # It raises the error for a text.
            super().write(data)
            return
        self._send(self._link.seal(data))

    def writeSequence(self, iovec: Iterable[bytes]) -> None:
        self.write(b"".join(iovec))

    def loseConnection(self, *args: Any, **kwargs: Any) -> None:
        if self.producer is None and self.connected:
            self._closeTLS()
        super().loseConnection(*args, **kwargs)

    def unregisterProducer(self) -> None:
        super().unregisterProducer()
        if self.disconnecting and self.connected:
            # What the producer had to say has been said.
            self._closeTLS()

    def loseWriteConnection(self) -> None:
        self._closeTLS()
        super().loseWriteConnection()

    def startTLS(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("the connection speaks TLS already")

    def connectionLost(self, reason: Any) -> None:
        self._stopTimer()
        super().connectionLost(reason)

    def _stopTimer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()

    # --- Sites.

    def _addHSTS(self, protocol: Any) -> bytes | None:
        """Lets a site's requests begin with `Strict-Transport-Security`. Returns its value."""
        line = self._port.hsts
        factory = getattr(protocol, "requestFactory", None)
        if line is not None and factory is not None:
            protocol.requestFactory = _with_hsts(factory, line)
        return line


def _with_hsts(factory: Callable[..., Any], line: bytes) -> Callable[..., Any]:
    def make(*arguments: Any) -> Any:
        request = factory(*arguments)
        request.responseHeaders.setRawHeaders(b"Strict-Transport-Security", [line])
        return request

    if iweb.INonQueuedRequestFactory.providedBy(factory):
        directlyProvides(make, iweb.INonQueuedRequestFactory)
    return make


class TlsServer(Server, TlsTransport):
    """The same, where the engine reads the requests."""

    def _addFields(self, protocol: Any) -> bytes | None:
        return self._addHSTS(protocol)

    def _nativeTLS(self) -> tuple[TlsLink, Callable[[bytes], None]]:
        return self._link, self._send

    def _cyclone_of(self, connection: object) -> None:
        # (The engine makes requests of the scheme http only.)
        return None

    def _end(self, last: bytes = b"") -> None:
        self._hand_over()
        super()._end(last)

    def startTLS(self, *args: Any, **kwargs: Any) -> None:
        TlsTransport.startTLS(self)
