"""The ten requests on Starlette, and WebSockets."""

import zlib

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocketDisconnect
from talking import echoes, refused


async def home(request):
    return PlainTextResponse("hello")


async def query(request):
    return JSONResponse(dict(request.query_params))


async def fields(request):
    one = request.headers["x-one"]
    return PlainTextResponse(one, headers={"X-One": one})


async def of_json(request):
    return JSONResponse({"got": await request.json()})


async def form(request):
    return PlainTextResponse((await request.form())["name"])


async def upload(request):
    file = (await request.form())["file"]
    content = await file.read()
    return PlainTextResponse(f"{file.filename} {len(content)} {zlib.crc32(content)}")


async def stream(request):
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n"

    return StreamingResponse(pieces(), media_type="text/plain")


async def redirect(request):
    response = RedirectResponse("/", 302)
    response.set_cookie("seen", "1")
    return response


async def echo(socket):
    await socket.accept(subprotocol=(socket.scope["subprotocols"] or [None])[0])
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if message.get("text") == "close":
                return await socket.close(4001, "asked for")
            if message.get("text") is not None:
                await socket.send_text(message["text"])
            else:
                await socket.send_bytes(message["bytes"])
    except WebSocketDisconnect:
        pass


async def closed(socket):
    await socket.close()


async def denied(socket):
    await socket.send_denial_response(PlainTextResponse("who are you?", 401))


app = Starlette(routes=[
    Route("/", home), Route("/query", query), Route("/headers", fields),
    Route("/json", of_json, methods=["POST"]), Route("/form", form, methods=["POST"]),
    Route("/upload", upload, methods=["POST"]), Route("/stream", stream),
    Route("/redirect", redirect), WebSocketRoute("/echo", echo),
    WebSocketRoute("/closed", closed), WebSocketRoute("/denied", denied),
])


def talk(connect):
    yield from echoes(connect)
    with connect("/echo", subprotocols=["v2", "v1"]) as link:
        yield "WebSocket: subprotocol", link.subprotocol
    yield "WebSocket: refused", refused(connect, "/closed")
    yield "WebSocket: denied", refused(connect, "/denied", has_content=True)
    yield "WebSocket: not found", refused(connect, "/there-is-none")
