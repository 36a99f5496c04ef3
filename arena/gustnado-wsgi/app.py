"""The WSGI entry for HttpArena: its HTTP/1.1 profiles without TLS, without a framework.

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
PIECE = 1 << 16

mimetypes.add_type("font/woff2", ".woff2")
mimetypes.add_type("image/webp", ".webp")
mimetypes.add_type("text/javascript", ".js")


def respond(start, content, kind="text/plain; charset=utf-8", status="200 OK"):
    start(status, [("Content-Type", kind), ("Content-Length", str(len(content)))])
    return [content]


def numbers(environ, *names):
    query = parse_qs(environ["QUERY_STRING"])
    return [int(query[name][0]) for name in names]


def baseline(environ, start):
    total = sum(numbers(environ, "a", "b"))
    if environ["REQUEST_METHOD"] == "POST":
        total += int(environ["wsgi.input"].read())
    return respond(start, b"%d" % total)


def pipeline(environ, start):
    return respond(start, b"ok")


def upload(environ, start):
    total = 0
    while piece := environ["wsgi.input"].read(PIECE):
        total += len(piece)
    return respond(start, b"%d" % total)


def listing(environ, start):
    count = int(environ["PATH_INFO"].removeprefix("/json/"))
    [factor] = numbers(environ, "m")
    items = [{**item, "total": item["price"] * item["quantity"] * factor}
             for item in ITEMS[:count]]
    content = orjson.dumps({"items": items, "count": len(items)})
    return respond(start, content, "application/json")


def file(environ, start):
    """A file by its name alone, sent by the server where it can."""
    path = STATIC / Path(environ["PATH_INFO"]).name
    if not path.is_file():
        return respond(start, b"not found", status="404 Not Found")
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if wrapper := environ.get("wsgi.file_wrapper"):
        start("200 OK", [("Content-Type", kind), ("Content-Length", str(path.stat().st_size))])
        return wrapper(path.open("rb"))
    return respond(start, path.read_bytes(), kind)


PAGES = {"/baseline11": baseline, "/pipeline": pipeline, "/upload": upload}


def app(environ, start):
    path = environ["PATH_INFO"]
    try:
        if page := PAGES.get(path):
            return page(environ, start)
        if path.startswith("/json/"):
            return listing(environ, start)
        if path.startswith("/static/"):
            return file(environ, start)
    except (KeyError, ValueError):
        return respond(start, b"bad request", status="400 Bad Request")
    return respond(start, b"not found", status="404 Not Found")
