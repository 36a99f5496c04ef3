"""The reactor: Twisted's own epoll reactor, with descriptors watched by the engine."""

import sys

from twisted.internet import main, posixbase, tcp
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.interfaces import IReactorFDSet
from twisted.python import log
from zope.interface import implementer

from .._gustnado import Poller


@implementer(IReactorFDSet)
class GustnadoReactor(EPollReactor):
    """Every interface that `EPollReactor` provides: TCP, SSL, UDP, multicast, Unix sockets,
    processes, threads, time, descriptors, names.

    The engine reads plain HTTP requests to a `twisted.web.server.Site` and responds to them.
    """

    def __init__(self):
        self._poller = Poller()
        self._reads = set()
        self._writes = set()
        self._selectables = {}
        self._continuousPolling = posixbase._ContinuousPolling(self)
        self._answers_requests = False
        # (Not EPollReactor's: it would make a poller of its own.)
        posixbase.PosixReactorBase.__init__(self)

    def listenTCP(self, port, factory, backlog=50, interface=""):
        listening = tcp.Port(port, factory, backlog, interface, self)
        self._serve_natively(listening, factory)
        listening.startListening()
        return listening

    def _serve_natively(self, listening, factory):
        """Lets the engine serve plain requests, if the factory allows it."""
        # (A program without a site does not pay for importing all of it.)
        if "twisted.web.http" not in sys.modules and "cyclone.web" not in sys.modules:
            return
        from . import _http

        if not _http.is_site(factory):
            return
        if not self._answers_requests:
            self._answers_requests = True
            self._poller.answer_requests(_http.encode_name, self._failed)
        listening.transport = _http.make_transport

    def _failed(self, number, error):
        """What `doPoll` does with an exception of a transport's; with none, it cannot be read."""
        selectable = self._selectables.get(number)
        if selectable is not None:
            log.callWithLogger(selectable, self._lose, selectable, error)
        elif error is not None:
            log.err(error)

    def _lose(self, selectable, error):
        if error is None:
            error = main.CONNECTION_LOST
        else:
            log.err(error)
        self._disconnectSelectable(selectable, error, True)


def install():
    """Makes it the reactor of this process. To be called before `twisted.internet.reactor` is
    imported anywhere."""
    reactor = GustnadoReactor()
    main.installReactor(reactor)
    return reactor
