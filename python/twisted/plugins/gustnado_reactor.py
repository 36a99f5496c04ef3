"""Lets `twistd --reactor=gustnado` find the reactor, and `--listen=gustnado-tls:…` its TLS."""

from twisted.application.reactors import Reactor
from twisted.internet.interfaces import IStreamServerEndpointStringParser
from twisted.plugin import IPlugin
from zope.interface import implementer

gustnado = Reactor(
    "gustnado", "gustnado.twisted", "Gustnado's reactor, which serves HTTP natively."
)
gustnado_cyclone = Reactor(
    "gustnado-cyclone", "gustnado.twisted._cyclone_reactor",
    "The same, with some functions of Cyclone replaced by faster ones."
)


@implementer(IPlugin, IStreamServerEndpointStringParser)
class _Parser:
    """TLS by the engine: `gustnado-tls:443:tls_cert=cert.pem:tls_key=key.pem`."""

    prefix = "gustnado-tls"

    def parseStreamServer(self, reactor, *words, **settings):
        # Imported where it is asked for: every program with endpoints loads all plugins.
        from gustnado.twisted._endpoint import endpoint

        return endpoint(reactor, *words, **settings)


gustnado_tls = _Parser()
