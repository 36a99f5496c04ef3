"""Server-sent events with Cyclone: a number each second, for as long as a client is connected.

    python cyclone_events.py [PORT]; curl -N http://127.0.0.1:8888/events

Events are written as bytes: on Python 3, Cyclone's own `sendEvent` raises TypeError.
"""

import sys

from gustnado.twisted import install

install()

import cyclone.web  # noqa: E402
from cyclone.sse import SSEHandler  # noqa: E402
from twisted.internet import reactor, task  # noqa: E402


class Numbers(SSEHandler):
    def bind(self):
        self.number = 0
        self.ticks = task.LoopingCall(self.tick)
        self.ticks.start(1)

    def tick(self):
        self.number += 1
        self.transport.write(b"id: %d\ndata: tick %d\n\n" % (self.number, self.number))

    def unbind(self):
        self.ticks.stop()


application = cyclone.web.Application([(r"/events", Numbers)])
reactor.listenTCP(int(sys.argv[1]) if len(sys.argv) > 1 else 8888, application)
reactor.run()
