"""The ten requests on Quart."""

import zlib

from quart import Quart, Response, redirect, request, websocket
from talking import echoes

app = Quart(__name__)
TEXT = {"Content-Type": "text/plain"}


@app.get("/")
async def home():
    return "hello", TEXT


@app.get("/query")
async def query():
    return dict(request.args)


@app.get("/headers")
async def fields():
    one = request.headers["X-One"]
    return one, {**TEXT, "X-One": one}


@app.post("/json")
async def of_json():
    return {"got": await request.get_json()}


@app.post("/form")
async def form():
    return (await request.form)["name"]


@app.post("/upload")
async def upload():
    file = (await request.files)["file"]
    content = file.read()
    return f"{file.filename} {len(content)} {zlib.crc32(content)}"


@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n".encode()

    return Response(pieces(), content_type="text/plain")


@app.get("/redirect")
async def away():
    response = redirect("/")
    response.set_cookie("seen", "1")
    return response


@app.websocket("/echo")
async def echo():
    await websocket.accept()
    while (message := await websocket.receive()) != "close":
        await websocket.send(message)
    await websocket.close(4001, "asked for")


def talk(connect):
    yield from echoes(connect)
