"""The ten requests on FastAPI: models, dependencies, forms and files by annotation."""

import zlib
from typing import Annotated

from fastapi import (
    Depends,
    FastAPI,
    Form,
    Header,
    UploadFile,
    WebSocket,
    WebSocketDisconnect,
    WebSocketException,
)
from fastapi.responses import PlainTextResponse, RedirectResponse, StreamingResponse
from pydantic import BaseModel
from talking import echoes, refused

app = FastAPI()


class Thing(BaseModel):
    name: str
    price: float = 1.5


@app.api_route("/", methods=["GET", "HEAD"])
async def home():
    return PlainTextResponse("hello")


async def both(name: str, x: int):
    yield {"name": name, "x": x}


@app.get("/query")
async def query(given: Annotated[dict, Depends(both)]):
    return given


@app.get("/headers")
def fields(x_one: Annotated[str, Header()]):
    return PlainTextResponse(x_one, headers={"X-One": x_one})


@app.post("/json")
async def of_json(thing: Thing) -> Thing:
    return thing


@app.post("/form")
def form(name: Annotated[str, Form()]):
    return PlainTextResponse(name)


@app.post("/upload")
async def upload(file: UploadFile):
    content = await file.read()
    return PlainTextResponse(f"{file.filename} {len(content)} {zlib.crc32(content)}")


@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n"

    return StreamingResponse(pieces(), media_type="text/plain")


@app.get("/redirect")
async def redirect():
    response = RedirectResponse("/", 302)
    response.set_cookie("seen", "1")
    return response


@app.websocket("/echo")
async def echo(socket: WebSocket):
    await socket.accept()
    try:
        while True:
            message = await socket.receive()
            socket._raise_on_disconnect(message)
            if message.get("text") == "close":
                return await socket.close(4001, "asked for")
            if message.get("text") is not None:
                await socket.send_text(message["text"])
            else:
                await socket.send_bytes(message["bytes"])
    except WebSocketDisconnect:
        pass


async def token(token: str = ""):
    if token != "a":
        raise WebSocketException(4003, "no token")


@app.websocket("/guarded", dependencies=[Depends(token)])
async def guarded(socket: WebSocket):
    await socket.accept()
    await socket.send_json({"you": "are in"})


def talk(connect):
    yield from echoes(connect)
    yield "WebSocket: refused by a dependency", refused(connect, "/guarded")
    with connect("/guarded?token=a") as link:
        yield "WebSocket: JSON", link.recv()
