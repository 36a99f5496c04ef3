"""The ASGI entry for HttpArena: its HTTP/1.1 profiles without TLS, and WebSocket,
without a framework.

    gustnado run --workers auto --host 0.0.0.0 --port 8080 app:app
"""

import mimetypes
import os
from pathlib import Path
from urllib.parse import parse_qs

import orjson

DATA = Path(os.environ.get("ARENA_DATA", "/data"))
STATIC = DATA / "static"
ITEMS = orjson.loads((DATA / "dataset.json").read_bytes())
TEXT = [(b"content-type", b"text/plain; charset=utf-8")]
PATHSEND = "http.response.pathsend"
JSON = [(b"content-type", b"application/json")]

mimetypes.add_type("font/woff2", ".woff2")
mimetypes.add_type("image/webp", ".webp")
mimetypes.add_type("text/javascript", ".js")


async def respond(send, content, fields=TEXT, status=200):
    length = (b"content-length", b"%d" % len(content))
    await send({"type": "http.response.start", "status": status, "headers": [*fields, length]})
    await send({"type": "http.response.body", "body": content})


async def pieces(receive):
    """The body as it comes."""
    while True:
        message = await receive()
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


def numbers(scope, *names):
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return [int(query[name][0]) for name in names]


async def baseline(scope, receive, send):
    total = sum(numbers(scope, "a", "b"))
    if scope["method"] == "POST":
        total += int(b"".join([piece async for piece in pieces(receive)]))
    await respond(send, b"%d" % total)


async def pipeline(scope, receive, send):
    await respond(send, b"ok")


async def upload(scope, receive, send):
    total = 0
    async for piece in pieces(receive):
        total += len(piece)
    await respond(send, b"%d" % total)


async def listing(scope, send):
    count = int(scope["path"].removeprefix("/json/"))
    [factor] = numbers(scope, "m")
    items = [{**item, "total": item["price"] * item["quantity"] * factor}
             for item in ITEMS[:count]]
    await respond(send, orjson.dumps({"items": items, "count": len(items)}), JSON)


async def file(scope, send):
    """A file by its name alone, sent by the server where it can."""
    path = STATIC / Path(scope["path"]).name
    if not path.is_file():
        return await respond(send, b"not found", status=404)
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    fields = [(b"content-type", kind.encode()),
              (b"content-length", b"%d" % path.stat().st_size)]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    if PATHSEND in scope.get("extensions", {}):
        await send({"type": PATHSEND, "path": str(path)})
    else:
        await send({"type": "http.response.body", "body": path.read_bytes()})


async def echo(receive, send):
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        elif message.get("text") is not None:
            await send({"type": "websocket.send", "text": message["text"]})
        else:
            await send({"type": "websocket.send", "bytes": message["bytes"]})


PAGES = {"/baseline11": baseline, "/pipeline": pipeline, "/upload": upload}


async def app(scope, receive, send):
    if scope["type"] == "websocket" and scope["path"] == "/ws":
        return await echo(receive, send)
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    path = scope["path"]
    try:
        if page := PAGES.get(path):
            await page(scope, receive, send)
        elif path.startswith("/json/"):
            await listing(scope, send)
        elif path.startswith("/static/"):
            await file(scope, send)
        else:
            await respond(send, b"not found", status=404)
    except (KeyError, ValueError):
        await respond(send, b"bad request", status=400)
