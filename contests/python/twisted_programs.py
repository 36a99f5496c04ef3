"""Programs of Twisted's on either reactor: REACTOR PORT PROGRAM [LOG].

A contest names a program by the page that it requests: /hello, /hello.txt; or cyclone.
"""

import os
import sys

reactor_name, port, program = sys.argv[1:4]
log_path = sys.argv[4] if len(sys.argv) > 4 else None
if reactor_name == "gustnado":
    from gustnado.twisted import install
    install(cyclone=program == "cyclone")
else:
    from twisted.internet.epollreactor import install
    install()

from twisted.internet import reactor  # noqa: E402


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


def files():
    from twisted.web import server, static

    return server.Site(static.File(os.getcwd()), logPath=log_path)


def cyclone():
    import cyclone.web

    class Hello(cyclone.web.RequestHandler):
        def get(self):
            self.write("Hello, world!")

    return cyclone.web.Application([("/hello", Hello)])


FACTORIES = {"hello": site, "hello.txt": files, "cyclone": cyclone}
reactor.listenTCP(int(port), FACTORIES[program](), backlog=4096, interface="127.0.0.1")
reactor.run()
