"""A site for twistd, which knows nothing of the reactor that it will run on.

    PORT=8888 twistd --reactor=gustnado --nodaemon --python twistd_site.tac
"""

import os

from twisted.application import service, strports
from twisted.web import resource, server, static

application = service.Application("a site")
root = resource.Resource()
root.putChild(b"", static.Data(b"Hello from twistd\n", "text/plain"))
port = os.environ.get("PORT", "8888")
strports.service(f"tcp:{port}", server.Site(root)).setServiceParent(application)
