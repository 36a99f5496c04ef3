"""Applications that say hello, stream a megabyte or send 10 KB of JSON: by ASGI, WSGI, RSGI, as a
framework's and as a handler."""

import functools
import json

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


PIECE = bytes(64 * 1024)
PIECES = 16
ITEMS = [{"id": number, "name": f"item {number}", "price": number * 0.25, "tags": ["a", "b"]}
         for number in range(160)]  # 10 KB of JSON


async def stream_asgi(scope, receive, send):
    fields = [(b"content-type", b"application/octet-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    for _ in range(PIECES):
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def stream_wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/octet-stream")])
    return (PIECE for _ in range(PIECES))


async def stream_rsgi(scope, protocol):
    transport = protocol.response_stream(200, [("content-type", "application/octet-stream")])
    for _ in range(PIECES):
        await transport.send_bytes(PIECE)


async def json_asgi(scope, receive, send):
    body = json.dumps(ITEMS).encode()
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})


def json_wsgi(environ, start_response):
    body = json.dumps(ITEMS).encode()
    fields = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("200 OK", fields)
    return [body]


@functools.cache
def __getattr__(name):
    # (Each is made once, however often it is asked for.)
    makers = {"native": _native, "busy": _busy, "flask": _flask, "fastapi": _fastapi}
    if name not in makers:
        raise AttributeError(name)
    return makers[name]()


def _native():
    import gustnado

    app = gustnado.App()

    @app.get("/")
    def hello():
        return "Hello, world!"

    @app.get("/stream")
    async def stream():
        async def pieces():
            for _ in range(PIECES):
                yield PIECE

        return gustnado.stream(pieces())

    @app.get("/json")
    def items():
        return ITEMS

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

    @app.get("/json")
    def items():
        return flask.jsonify(ITEMS)

    return app


def _fastapi():
    import fastapi

    app = fastapi.FastAPI()

    @app.get("/")
    async def hello():
        return fastapi.Response(TEXT, media_type="text/plain")

    @app.get("/json")
    async def items():
        return fastapi.responses.JSONResponse(ITEMS)

    return app


async def upload_asgi(scope, receive, send):
    """The length of a body that is read in pieces."""
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    text = b"%d" % length
    fields = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": text})


def upload_wsgi(environ, start_response):
    """The same."""
    length = 0
    while piece := environ["wsgi.input"].read(65536):
        length += len(piece)
    text = b"%d" % length
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]
