"""The entry of the package's own handlers for HttpArena: its HTTP/1.1 profiles without TLS,
and WebSocket.

    gustnado run --workers auto --host 0.0.0.0 --port 8080 --cache-bytes off app:app
"""

import os
from pathlib import Path

import gustnado
import orjson

DATA = Path(os.environ.get("ARENA_DATA", "/data"))
ITEMS = orjson.loads((DATA / "dataset.json").read_bytes())

app = gustnado.App()


@app.get("/pipeline")
def pipeline():
    return "ok"


def total(request):
    return int(request.query_value("a")) + int(request.query_value("b"))


@app.get("/baseline11")
def baseline(request):
    return str(total(request))


@app.post("/baseline11")
def baseline_with_body(request):
    return str(total(request) + int(request.body))


@app.get("/json/{count}")
def listing(request, count):
    factor = int(request.query_value("m"))
    items = [{**item, "total": item["price"] * item["quantity"] * factor}
             for item in ITEMS[:int(count)]]
    content = orjson.dumps({"items": items, "count": len(items)})
    return gustnado.Response(content, content_type="application/json")


@app.post("/upload")
async def upload(request):
    size = 0
    async for piece in request.stream():
        size += len(piece)
    return str(size)


@app.websocket("/ws")
async def echo(socket):
    async for message in socket:
        await socket.send(message)


app.files("/static", DATA / "static")
