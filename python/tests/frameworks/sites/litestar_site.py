"""The ten requests on Litestar."""

import zlib
from typing import Annotated, Any

from litestar import Litestar, MediaType, Request, Response, WebSocket, get, post, route, websocket
from litestar.datastructures import UploadFile
from litestar.enums import RequestEncodingType
from litestar.exceptions import WebSocketDisconnect
from litestar.params import Body
from litestar.response import Redirect, Stream
from talking import echoes


@route("/", http_method=["GET", "HEAD"], media_type=MediaType.TEXT)
async def home() -> str:
    return "hello"


@get("/query")
async def query(name: str, x: int) -> dict[str, Any]:
    return {"name": name, "x": x}


@get("/headers", media_type=MediaType.TEXT)
async def fields(request: Request) -> Response[str]:
    one = request.headers["x-one"]
    return Response(one, headers={"X-One": one})


@post("/json")
async def of_json(data: dict[str, Any]) -> dict[str, Any]:
    return {"got": data}


@post("/form", media_type=MediaType.TEXT)
async def form(
    data: Annotated[dict[str, str], Body(media_type=RequestEncodingType.URL_ENCODED)],
) -> str:
    return data["name"]


@post("/upload", media_type=MediaType.TEXT)
async def upload(
    data: Annotated[dict[str, UploadFile], Body(media_type=RequestEncodingType.MULTI_PART)],
) -> str:
    file = data["file"]
    content = await file.read()
    return f"{file.filename} {len(content)} {zlib.crc32(content)}"


@get("/stream")
async def stream() -> Stream:
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n"

    return Stream(pieces(), media_type="text/plain")


@get("/redirect", status_code=302)
async def redirect() -> Redirect:
    response = Redirect("/")
    response.set_cookie("seen", "1")
    return response


@websocket("/echo")
async def echo(socket: WebSocket) -> None:
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
    except WebSocketDisconnect:
        pass


app = Litestar([home, query, fields, of_json, form, upload, stream, redirect, echo],
               request_max_body_size=None, openapi_config=None)


def talk(connect):
    yield from echoes(connect)
