"""Applications by handlers, ASGI, WSGI and RSGI, whose paths say what is sent; and two that read a
body.

Frameworks are imported by the first request for them, so that the others do not pay for them.
"""

import functools
import json

TEXT = b"Hello, world!"
PIECE = bytes(64 * 1024)
PIECES = 16
ITEMS = [{"id": number, "name": f"item {number}", "price": number * 0.25, "tags": ["a", "b"]}
         for number in range(172)]  # 10 KB of JSON


def items_as_json():
    """The same bytes as a handler's that returns them."""
    return json.dumps(ITEMS, separators=(",", ":"), ensure_ascii=False).encode()


async def asgi(scope, receive, send):
    path = scope["path"]  # A lifespan has none: it fails, as the specification asks.
    if path == "/hello":
        kind, body = b"text/plain", TEXT
    elif path == "/json":
        kind, body = b"application/json", items_as_json()
    elif path == "/stream":
        return await stream_asgi(send)
    else:
        return await fastapi_app()(scope, receive, send)
    fields = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def stream_asgi(send):
    fields = [(b"content-type", b"application/octet-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    for _ in range(PIECES):
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def wsgi(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/hello":
        kind, body = "text/plain", TEXT
    elif path == "/json":
        kind, body = "application/json", items_as_json()
    elif path == "/stream":
        start_response("200 OK", [("Content-Type", "application/octet-stream")])
        return (PIECE for _ in range(PIECES))
    else:
        return flask_app()(environ, start_response)
    start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


async def rsgi(scope, protocol):
    if scope.path == "/hello":
        fields = [("content-type", "text/plain"), ("content-length", "13")]
        protocol.response_bytes(200, fields, TEXT)
        return
    transport = protocol.response_stream(200, [("content-type", "application/octet-stream")])
    for _ in range(PIECES):
        await transport.send_bytes(PIECE)


def handlers():
    """A factory: other servers import this module without the package."""
    import gustnado

    app = gustnado.App()

    @app.get("/hello")
    def hello():
        return "Hello, world!"

    @app.get("/json")
    def items():
        return ITEMS

    @app.get("/stream")
    async def stream():
        async def pieces():
            for _ in range(PIECES):
                yield PIECE

        return gustnado.stream(pieces())

    return app


@functools.cache
def flask_app():
    import flask

    app = flask.Flask("hello")

    @app.get("/flask/hello")
    def hello():
        return flask.Response(TEXT, content_type="text/plain")

    @app.get("/flask/json")
    def items():
        return flask.jsonify(ITEMS)

    return app


@functools.cache
def fastapi_app():
    import fastapi

    app = fastapi.FastAPI()

    @app.get("/fastapi/json")
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
