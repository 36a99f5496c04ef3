"""The reactor of `twistd --reactor=gustnado-cyclone`."""

from __future__ import annotations

from . import _reactor


def install() -> _reactor.GustnadoReactor:
    """Makes it the reactor of this process, and replaces functions of Cyclone."""
    return _reactor.install(cyclone=True)
