"""The endpoint `gustnado-tls:PORT:tls_cert=FILE:tls_key=FILE` of twistd and of programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twisted.internet import defer
from twisted.internet.interfaces import IStreamServerEndpoint
from zope.interface import implementer  # type: ignore[import-untyped]

from ._reactor import GustnadoReactor


def endpoint(
    reactor: object, port: str, interface: str = "", backlog: str = "50", **settings: str
) -> NativeTLSEndpoint:
    """Returns what listens by TLS of the engine.

    - `settings`: those of `GustnadoReactor.listenTCP`, by their names.

    Raises `ValueError` for another reactor, or a port that is no number.
    """
    if not isinstance(reactor, GustnadoReactor):
        raise ValueError("gustnado-tls needs --reactor=gustnado, or gustnado.twisted.install()")
    listen = functools.partial(
        reactor.listenTCP, int(port), interface=interface, backlog=int(backlog), native_tls=True,
        **settings,
    )
    return NativeTLSEndpoint(listen)


@implementer(IStreamServerEndpoint)
class NativeTLSEndpoint:
    """An endpoint that speaks TLS by the engine."""

    def __init__(self, listen: Callable[..., Any]) -> None:
        self._listen = listen

    def listen(self, protocolFactory: object) -> defer.Deferred[Any]:
        return defer.execute(self._listen, factory=protocolFactory)
