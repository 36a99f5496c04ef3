"""The ten requests on BlackSheep."""

import zlib

from blacksheep import (
    Application,
    Content,
    Cookie,
    Request,
    Response,
    StreamedContent,
    WebSocket,
    WebSocketDisconnectError,
    get,
    head,
    json,
    post,
    redirect,
    text,
    ws,
)
from talking import echoes

app = Application()


@get("/")
async def home():
    return text("hello")


@head("/")
async def home_head():
    return text("hello")


@get("/query")
async def query(name: str, x: int):
    return json({"name": name, "x": x})


@get("/headers")
async def fields(request: Request):
    one = request.headers.get_single(b"x-one")
    return Response(200, [(b"X-One", one)], Content(b"text/plain", one))


@post("/json")
async def of_json(request: Request):
    return json({"got": await request.json()})


@post("/form")
async def form(request: Request):
    return text((await request.form())["name"])


@post("/upload")
async def upload(request: Request):
    (file,) = await request.files("file")
    content = file.data if isinstance(file.data, bytes) else file.file.read()
    return text(f"{file.file_name.decode()} {len(content)} {zlib.crc32(content)}")


@get("/stream")
async def stream():
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n".encode()

    return Response(200, content=StreamedContent(b"text/plain", pieces))


@get("/redirect")
async def away():
    response = redirect("/")
    response.set_cookie(Cookie("seen", "1"))
    return response


@ws("/echo")
async def echo(socket: WebSocket):
    await socket.accept()
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
    except WebSocketDisconnectError:
        pass


def talk(connect):
    yield from echoes(connect)
