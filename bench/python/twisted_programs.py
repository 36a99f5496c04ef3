"""Programs of Twisted's on either reactor: REACTOR PROGRAM PORT [LOG]."""

import os
import sys

reactor_name, program, port = sys.argv[1:4]
log_path = sys.argv[4] if len(sys.argv) > 4 else None
if reactor_name == "gustnado":
    from gustnado.twisted import install
    install(cyclone=program == "cyclone")
else:
    from twisted.internet.epollreactor import install
    install()

from twisted.internet import protocol, reactor  # noqa: E402


def site():
    from twisted.web import resource, server

    class Hello(resource.Resource):
        isLeaf = True

        def render_GET(self, request):
            return b"Hello, world!"

    made = server.Site(Hello(), logPath=log_path)
    if log_path is None:
        made.log = lambda request: None
    return made


def cyclone():
    import cyclone.web

    class Hello(cyclone.web.RequestHandler):
        def get(self):
            self.write("Hello, world!")

    return cyclone.web.Application([(r"/", Hello)])


def echo():
    class Echo(protocol.Protocol):
        def dataReceived(self, data):
            self.transport.write(data)

    return protocol.Factory.forProtocol(Echo)


def files():
    from twisted.web import server, static

    return server.Site(static.File(os.path.dirname(log_path)), logPath=log_path)


FACTORIES = {"site": site, "cyclone": cyclone, "echo": echo, "files": files}
reactor.listenTCP(int(port), FACTORIES[program](), backlog=2048, interface="127.0.0.1")
reactor.run()
