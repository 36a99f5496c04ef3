"""Twisted on the engine's reactor.

    from gustnado.twisted import install
    install()
    from twisted.internet import reactor

or `twistd --reactor=gustnado`.
"""

from ._reactor import GustnadoReactor, install

__all__ = ["GustnadoReactor", "install"]
