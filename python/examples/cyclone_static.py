"""Files and a page that links to them, with Cyclone.

    python cyclone_static.py [PORT]
"""

import os
import sys

from gustnado.twisted import install

install()

import cyclone.web  # noqa: E402
from twisted.internet import reactor  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


class Page(cyclone.web.RequestHandler):
    def get(self):
        # A link that changes with the file, so that it can be kept for years.
        self.write(f'<a href="{self.static_url("hello.txt")}">a file</a>\n')


application = cyclone.web.Application([(r"/", Page)], static_path=os.path.join(HERE, "public"))
reactor.listenTCP(int(sys.argv[1]) if len(sys.argv) > 1 else 8888, application)
reactor.run()
