"""The ten requests on Flask by ASGI (`asgi`), and on Starlette by WSGI (`wsgi`), through a2wsgi."""

import flask_site
import starlette_site
from a2wsgi import ASGIMiddleware, WSGIMiddleware

asgi, wsgi = WSGIMiddleware(flask_site.app), ASGIMiddleware(starlette_site.app)
