"""Hello world with twisted.web.

    python twisted_hello.py [PORT]
"""

import sys

from gustnado.twisted import install

install()

from twisted.internet import endpoints, reactor  # noqa: E402
from twisted.web import resource, server  # noqa: E402


class Hello(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        return b"Hello, world!\n"


port = sys.argv[1] if len(sys.argv) > 1 else "8888"
endpoints.serverFromString(reactor, f"tcp:{port}").listen(server.Site(Hello()))
reactor.run()
