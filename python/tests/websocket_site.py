"""Servers with the same program in clear and by TLS, for tests of WebSockets."""

import contextlib
import importlib.util
import ssl

from conftest import self_signed, serving
from websocket_link import WebSocketLink

LOOPS = ["asyncio", *(["uvloop"] if importlib.util.find_spec("uvloop") else [])]


class Site:
    """The two servers, and how they are asked."""

    def __init__(self, clear, secure, certificate):
        self.clear, self.secure, self.certificate = clear, secure, certificate

    @classmethod
    @contextlib.contextmanager
    def serving(cls, folder, program, loop):
        """Both, while they run."""
        certificate = self_signed(folder)
        loop = ["--loop", loop]
        with serving(folder, program, "--h2c", *loop) as clear:
            with serving(folder, program, "--tls-cert", "cert.pem", "--tls-key", "key.pem",
                         *loop) as secure:
                yield cls(clear, secure, certificate)

    def server(self, carrier="plain"):
        return self.secure if carrier in ("tls", "h2") else self.clear

    def open(self, path, fields=(), carrier="plain", **more):
        context = ssl.create_default_context(cafile=self.certificate)
        return WebSocketLink(self.server(carrier).port, path, fields, carrier, context, **more)
