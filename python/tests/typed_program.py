"""A program with types for all that `gustnado` offers: `test_types.py` has mypy look at it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import gustnado
from gustnado import App, Request, Response, WebSocket, Writer

app = App()


@app.before
def note(request: Request) -> None:
    path: str = request.path
    print(request.method, path, request.client or "somebody", request.scheme)


@app.before(under="/secret")
async def guard(request: Request) -> tuple[int, str] | None:
    return None if request.header("authorization", "") == "open sesame" else (401, "who are you?")


@app.after
def sign(request: Request, response: Response) -> None:
    response.status = 200 if response.status == 203 else response.status
    if response.header("x-answer") is None:
        response.add_header("X-Answer", request.target)


@app.get("/hello/{name}")
def hello(name: str) -> str:
    return f"Hello, {name}!"


@app.post("/upload")
async def upload(request: Request) -> dict[str, int]:
    body: bytes = await request.read(limit=1_000_000)
    return {"bytes": len(body)}


@app.put("/pieces")
async def pieces(request: Request) -> int | tuple[int, None]:
    length = 0
    async for piece in request.stream():
        length += len(piece)
    return 204, None


@app.route("/anything", "OPTIONS")
def anything(request: Request) -> list[Any]:
    first: str | None = request.query_value("a")
    pairs: list[tuple[str, str]] = request.query
    return [first, pairs, request.cookie("c"), request.params, request.public_host, request.peer]


@app.get("/file")
def file() -> Response:
    return Response.file(Path("hello.txt"), headers={"Cache-Control": "no-cache"})


@app.get("/stream")
async def streamed() -> Response:
    async def later() -> AsyncIterator[bytes]:
        yield b"piece"

    return gustnado.stream(later(), content_type="text/plain", headers=[("X-Kind", b"late")])


@app.get("/now")
async def now() -> Response:
    def at_once() -> Iterator[str]:
        yield "piece"

    return gustnado.stream(at_once(), status=203)


@app.get("/events")
async def ticks() -> Response:
    async def source() -> AsyncIterator[str | dict[str, Any]]:
        yield "text"
        yield {"event": "tick", "id": 1, "data": {"number": 1}}

    return gustnado.events(source(), retry=1000, heartbeat=None)


@app.delete("/written")
async def written() -> Response:
    response, writer = Response.open(202, content_type="text/plain")
    asyncio.get_running_loop().call_later(0.01, write, writer)
    return response


def write(writer: Writer) -> None:
    try:
        if not writer.write(b"done"):
            writer.when_room(lambda: print("there is room"))
    except gustnado.ClientDisconnected as error:
        print(error.args)
    writer.close()


@app.patch("/other")
def other(request: Request) -> Response:
    return Response.of((201, {"version": request.http_version}))


@app.websocket("/chat/{room}", subprotocols=["v1"], origins=["https://example.org"])
async def chat(socket: WebSocket, room: str) -> None:
    first: str | bytes = await socket.receive()
    await socket.send(first)
    async for message in socket:
        if isinstance(message, str) and not socket.try_send(message.upper()):
            await socket.close(1013, f"too slow for {room}")
    code: int | None = socket.close_code
    print(code, socket.close_reason, socket.subprotocol, socket.request.path)


app.files("/static", Path("public")).files("/more", "more")


def serve_for_a_while() -> list[str]:
    with gustnado.Server("main:app", port=0, lifespan="off", access_log=Path("a.log")) as server:
        return server.urls


if __name__ == "__main__":
    app.run(port=8000, workers=2, grace=5.0, timeout_keep_alive="30s", scheduler="queue")
