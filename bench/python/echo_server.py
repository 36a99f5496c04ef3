"""Sends back what it gets, on either of Twisted's reactors: REACTOR PORT."""

import sys

if sys.argv[1] == "gustnado":
    from gustnado.twisted import install
else:
    from twisted.internet.epollreactor import install
install()

from twisted.internet import protocol, reactor  # noqa: E402


class Echo(protocol.Protocol):
    def dataReceived(self, data):
        self.transport.write(data)


factory = protocol.Factory.forProtocol(Echo)
reactor.listenTCP(int(sys.argv[2]), factory, backlog=2048, interface="127.0.0.1")
reactor.run()
