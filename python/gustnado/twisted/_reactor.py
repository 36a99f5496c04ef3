"""The reactor: Twisted's own epoll reactor, with descriptors watched by the engine."""

from __future__ import annotations

import sys
from typing import Any

from twisted.internet import main, posixbase, tcp
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.interfaces import IReactorFDSet
from twisted.python import log
from zope.interface import implementer  # type: ignore[import-untyped]

from .._gustnado import Poller


@implementer(IReactorFDSet)
class GustnadoReactor(EPollReactor):
    """Every interface that `EPollReactor` provides: TCP, SSL, UDP, multicast, Unix sockets,
    processes, threads, time, descriptors, names.

    The engine reads plain HTTP requests to a `twisted.web.server.Site` and responds to them.

    - `cyclone`: whether functions of Cyclone's `RequestHandler` are replaced by faster ones once an
      application of Cyclone is served.
    """

    def __init__(self, cyclone: bool = False) -> None:
        self._poller = Poller()
        self._reads: set[int] = set()
        self._writes: set[int] = set()
        self._selectables: dict[int, Any] = {}
        self._continuousPolling = posixbase._ContinuousPolling(self)
        self._answers_requests = False
        self._patches_cyclone = cyclone
        # (Not EPollReactor's: it would make a poller of its own.)
        posixbase.PosixReactorBase.__init__(self)

    def listenTCP(
        self,
        port: Any,
        factory: Any,
        backlog: int = 50,
        interface: str = "",
        *,
        native_tls: bool = False,
        **settings: Any,
    ) -> tcp.Port:
        """Listens, as every reactor does.

        - `native_tls`: whether connections speak TLS by the engine, not by pyOpenSSL.
        - `settings`: then the settings of that: `tls_cert`, `tls_key`, `tls_client_auth`,
          `tls_client_ca`, `tls_client_crl`, `tls_version_min`, `tls_strict_names`,
          `tls_ticket_keys`, `tls_handshake_timeout`, `tls_records` and `hsts` as those of
          `gustnado run`, and `tls_sites`: certificates of hosts, each with the files of a
          certificate and of its key.

        Raises `ValueError` for settings of TLS that cannot be used.
        """
        listening = tcp.Port(port, factory, backlog, interface, self)
        is_site = self._serve_natively(listening, factory)
        if native_tls:
            self._speak_tls(listening, factory, is_site, settings)
        elif settings:
            raise ValueError(f"{next(iter(settings))}: set native_tls=True, too")
        listening.startListening()
        return listening

    def _speak_tls(
        self, listening: Any, factory: object, is_site: bool, settings: dict[str, Any]
    ) -> None:
        from . import _tls

        host = listening.interface or "0.0.0.0"
        host = f"[{host}]" if ":" in host else host
        listening.nativeTLS = _tls.TlsPort(f"{host}:{listening.port}", factory, settings)
        listening.transport = _tls.make_transport if is_site else _tls.TlsTransport

    def _serve_natively(self, listening: tcp.Port, factory: object) -> bool:
        """Lets the engine serve plain requests, if the factory allows it. Returns whether."""
        # (A program without a site does not pay for importing all of it.)
        if "twisted.web.http" not in sys.modules and "cyclone.web" not in sys.modules:
            return False
        from . import _http

        if not _http.is_site(factory, self._patches_cyclone):
            return False
        if not self._answers_requests:
            self._answers_requests = True
            self._poller.answer_requests(_http.encode_name, self._failed)
        # It is called as the class is.
        listening.transport = _http.make_transport  # type: ignore[assignment]
        return True

    def _failed(self, fd: int, error: BaseException | None) -> None:
        """What `doPoll` does with an exception of a transport's; with none, it cannot be read."""
        selectable = self._selectables.get(fd)
        if selectable is not None:
            log.callWithLogger(selectable, self._lose, selectable, error)
        elif error is not None:
            log.err(error)

    def _lose(self, selectable: Any, error: BaseException | None) -> None:
        if error is None:
            error = main.CONNECTION_LOST
        else:
            log.err(error)
        self._disconnectSelectable(selectable, error, True)


def install(cyclone: bool = False) -> GustnadoReactor:
    """Makes it the reactor of this process, and returns it. To be called before
    `twisted.internet.reactor` is imported anywhere.

    - `cyclone`: whether functions of Cyclone's `RequestHandler` are replaced by faster ones once an
      application of Cyclone is served.

    Raises `ReactorAlreadyInstalledError` where that is too late."""
    reactor = GustnadoReactor(cyclone)
    main.installReactor(reactor)
    return reactor
