"""Hello world with Cyclone.

    python hello_world.py [PORT]
"""

import sys

from gustnado.twisted import install

install()

import cyclone.web  # noqa: E402
from twisted.internet import reactor  # noqa: E402


class MainHandler(cyclone.web.RequestHandler):
    def get(self):
        self.write("Hello, world")


application = cyclone.web.Application([(r"/", MainHandler)])
reactor.listenTCP(int(sys.argv[1]) if len(sys.argv) > 1 else 8888, application)
reactor.run()
