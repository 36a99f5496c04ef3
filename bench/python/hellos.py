"""Applications that say hello: by ASGI, WSGI, RSGI, as Flask's and as a handler."""

import functools

TEXT = b"Hello, world!"
FIELDS = [("content-type", "text/plain"), ("content-length", "13")]


async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"13")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": TEXT})


def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "13")])
    return [TEXT]


async def rsgi(scope, protocol):
    protocol.response_bytes(200, FIELDS, TEXT)


@functools.cache
def __getattr__(name):
    # (Each is made once, however often it is asked for.)
    makers = {"native": _native, "busy": _busy, "flask": _flask}
    if name not in makers:
        raise AttributeError(name)
    return makers[name]()


def _native():
    import gustnado

    app = gustnado.App()

    @app.get("/")
    def hello():
        return "Hello, world!"

    return app


def _busy():
    """The same beside a thread that computes all the time."""
    import threading

    def compute():
        number = 0
        while True:
            number += 1

    threading.Thread(target=compute, daemon=True).start()
    return _native()


def _flask():
    import flask

    app = flask.Flask("hello")

    @app.get("/")
    def hello():
        return flask.Response(TEXT, content_type="text/plain")

    return app
